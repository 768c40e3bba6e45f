import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { WatchedChild } from "./watched-child.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-child-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const limits = { startMs: 20_000, answerMs: 20_000 };

function script(name: string, text: string): string {
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, text);
  return path;
}

/** Whether a process of this number is there. */
function lives(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch {
    return false;
  }
}

it("answers one message after another, and ends when it is told to", async () => {
  const text = `process.on("message", (n) => process.send({ twice: 2 * n })); process.send("ready");`;
  const child = await WatchedChild.start<{ twice: number }>(script("twice", text), [], limits);
  expect(await child.ask(3)).toEqual({ twice: 6 });
  expect(await child.ask(4)).toEqual({ twice: 8 });
  child.end();
  await vi.waitFor(() => expect(lives(child.id!)).toBe(false));
});

it("one that does not start in its time is killed", async () => {
  const where = join(folder, "number");
  const text = `import { writeFileSync } from "node:fs";
    writeFileSync(${JSON.stringify(where)}, String(process.pid)); setInterval(() => {}, 1000);`;
  const begun = WatchedChild.start(script("silent", text), [], { ...limits, startMs: 2_000 });
  await expect(begun).rejects.toThrow("no answer within 2000 ms");
  const number = Number(readFileSync(where, "utf8"));
  await vi.waitFor(() => expect(lives(number)).toBe(false));
});

it("one that ends or keeps silent has died", async () => {
  const ends = script(
    "ends",
    `process.on("message", () => process.exit(7)); process.send("ready");`,
  );
  const child = await WatchedChild.start(ends, [], limits);
  expect(await child.ask(1)).toEqual({ died: "the process ended (7)" });
  const mute = script("mute", `process.on("message", () => {}); process.send("ready");`);
  const other = await WatchedChild.start(mute, [], { ...limits, answerMs: 50 });
  expect(await other.ask(1)).toEqual({ died: "no answer within 50 ms" });
  await vi.waitFor(() => expect(lives(other.id!)).toBe(false));
});
