import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openKeptFiles } from "./kept-files.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "wavetile-kept-"));
  vi.stubEnv("WAVETILE_HOME", home);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});
const folder = () => join(home, "cache", "things");
const bytes = (length: number, value = 1) => new Uint8Array(length).fill(value);

describe("kept files", () => {
  it("gives back what was written, and nothing for other keys", () => {
    const store = openKeptFiles("things");
    expect(store.read("a")).toBeUndefined();
    store.write("a", bytes(10));
    expect(openKeptFiles("things").read("a")).toEqual(bytes(10));
    expect(store.read("b")).toBeUndefined();
  });

  it("takes a damaged or short file for an absent one", () => {
    const store = openKeptFiles("things");
    store.write("a", bytes(10));
    const path = join(folder(), "a");
    const file = readFileSync(path);
    file[file.length - 1]! ^= 1;
    writeFileSync(path, file);
    expect(store.read("a")).toBeUndefined();
    writeFileSync(path, file.subarray(0, 20));
    expect(store.read("a")).toBeUndefined();
  });

  it("keeps to its size: what was used longest ago goes first", () => {
    const store = openKeptFiles("things", 400);
    store.write("a", bytes(100));
    store.write("b", bytes(100));
    utimesSync(join(folder(), "b"), 1, 1);
    utimesSync(join(folder(), "a"), 2, 2);
    expect(store.read("b")).toBeDefined();
    store.write("c", bytes(100));
    expect(readdirSync(folder()).sort()).toEqual(["b", "c"]);
    store.write("d", bytes(500));
    expect(readdirSync(folder()).sort()).toEqual(["b", "c"]);
  });

  it("does without a folder that cannot be made", () => {
    writeFileSync(join(home, "cache"), "in the way");
    const store = openKeptFiles("things");
    store.write("a", bytes(10));
    expect(store.read("a")).toBeUndefined();
  });
});
