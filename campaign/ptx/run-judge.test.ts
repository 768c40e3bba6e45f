import { expect, it } from "vitest";
import { said } from "./run-judge.ts";

it("what judges say comes back to who asked, also of several at once and of one that fails", async () => {
  const script = (text: string) => ["-e", text] as const;
  const [first, second, failed] = await Promise.all([
    said(process.execPath, script("setTimeout(() => console.log('first'), 200)")),
    said(process.execPath, script("console.error('second')")),
    said(process.execPath, script("process.exit(3)")),
  ]);
  expect(first).toEqual({ ok: true, stdout: "first\n", stderr: "" });
  expect(second).toEqual({ ok: true, stdout: "", stderr: "second\n" });
  expect(failed).toEqual({ ok: false, stdout: "", stderr: "" });
});

it("a judge that is not there is told as such", async () => {
  await expect(said("/nowhere/ptxas", ["--version"])).rejects.toThrow(/ENOENT/);
});
