import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openAppendLog } from "./append-log.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-log-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("an append log", () => {
  it("is empty before it is written, and made with its folders", () => {
    const log = openAppendLog(join(folder, "a/b/t.jsonl"));
    expect(log.read()).toMatchObject({ ok: true, value: "" });
    log.append(["one", "two"]);
    log.append(["three"]);
    expect(log.read()).toMatchObject({ value: "one\ntwo\nthree\n" });
  });

  it("closes a line that another writer left open", () => {
    const path = join(folder, "torn.jsonl");
    const log = openAppendLog(path);
    log.append(["one"]);
    appendFileSync(path, "half of");
    log.append(["two"]);
    expect(readFileSync(path, "utf8")).toBe("one\nhalf of\ntwo\n");
  });

  it("says why it cannot be read or written", () => {
    const log = openAppendLog(folder);
    expect(log.read()).toMatchObject({ diagnostics: [{ code: "RUN030" }] });
    expect(log.append(["x"])).toMatchObject({ diagnostics: [{ code: "RUN031" }] });
  });

  it("keeps the lines of several processes whole", async () => {
    const path = join(folder, "shared.jsonl");
    const script = `const fs = require("node:fs");
      for (let i = 0; i < 200; i++) {
        const f = fs.openSync(${JSON.stringify(path)}, "a+");
        fs.writeSync(f, process.argv[1].repeat(500) + "\\n");
        fs.closeSync(f);
      }`;
    const others = ["a", "b"].map(
      (letter) =>
        new Promise((done) => spawn(process.execPath, ["-e", script, letter]).on("exit", done)),
    );
    const log = openAppendLog(path);
    for (let i = 0; i < 200; i++) log.append(["c".repeat(500)]);
    expect(await Promise.all(others)).toEqual([0, 0]);
    const lines = readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "");
    expect(lines.length).toBe(600);
    expect(new Set(lines).size).toBe(3);
  });
});
