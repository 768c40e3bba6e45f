import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { shortRunFlags } from "./engine-flags.ts";

test("this engine knows the settings that it is started with", () => {
  const { status, stderr } = spawnSync(process.execPath, [...shortRunFlags(), "-e", "0"]);
  expect([status, String(stderr)]).toEqual([0, ""]);
});
