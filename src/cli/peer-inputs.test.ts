/** What onnxruntime itself is fed beside a compiled model. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sumModel } from "../commands/library/sample-model.test-support.ts";
import { runCaptured } from "./run-captured.test-support.ts";

let folder = "";
let sum = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-peer-inputs-"));
  sum = join(folder, "sum.onnx");
  writeFileSync(sum, sumModel());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function againstPeer(command: "verify" | "bench", ...options: readonly string[]) {
  const args = [command, sum, ...options, "--threads", "1", "--against", "onnxruntime", "--json"];
  const { out } = await runCaptured(args, () => performance.now());
  const { data, error } = JSON.parse(out);
  return { data, code: error?.code as string | undefined };
}

it("feeds the peer what --value fixes", async () => {
  const verified = await againstPeer("verify", "--value", "s=1,2");
  expect(verified).toMatchObject({ data: { outputs: [{ agrees: true }] } });
  const timed = await againstPeer("bench", "--value", "s=1,2", "--runs", "3");
  // Which of them is faster is no matter here.
  expect([undefined, "CLI007"]).toContain(timed.code);
  expect(timed.data).toMatchObject({ results: [{ name: "wavetile" }, { name: "onnxruntime" }] });
});
