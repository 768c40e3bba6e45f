import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { probeNativeFeatures } from "../native/features.ts";
import { mapFile, mappedAddress } from "./mapped-file.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-mapped-"));
afterAll(() => rmSync(folder, { recursive: true }));

const native = probeNativeFeatures();
const canMap = native.ok && native.value.system.mapFile !== undefined;

function written(name: string, size: number): { path: string; contents: Uint8Array } {
  const path = join(folder, name);
  const contents = Uint8Array.from({ length: size }, (_, i) => i * 7 + (i >> 8));
  writeFileSync(path, contents);
  return { path, contents };
}

describe.runIf(canMap)("a mapped file", () => {
  it("has its bytes, page by page, huge pages too, and is given back once", () => {
    for (const size of [1, 4095, 4096, 70_000, 2 ** 21 + 5]) {
      const { path, contents } = written(`file-${size}`, size);
      const mapped = mapFile(path)!;
      expect(mapped.bytes.length).toBe(size);
      expect(Buffer.compare(mapped.bytes, contents)).toBe(0);
      const part = mapped.bytes.subarray(size >> 1);
      expect(mappedAddress(part)! - mappedAddress(mapped.bytes)!).toBe(BigInt(size >> 1));
      if (size >= 2 ** 21) expect(mappedAddress(mapped.bytes)! % BigInt(2 ** 21)).toBe(0n);
      mapped.release();
      // Once: the addresses may be another mapping's by now.
      mapped.release();
    }
    expect(mappedAddress(new Uint8Array(8))).toBeUndefined();
  });

  it("is of pages that nobody writes, one set for all who map it", () => {
    const { path } = written("shared", 3 * 4096);
    const both = [mapFile(path)!, mapFile(path)!];
    const rows = readFileSync("/proc/self/maps", "utf8").split("\n");
    const own = rows.filter((row) => row.endsWith(path)).map((row) => row.split(/ +/));
    expect(own.map(([, access]) => access)).toEqual(["r--p", "r--p"]);
    // The same file of the same device.
    expect(new Set(own.map(([, , , device, inode]) => `${device} ${inode}`)).size).toBe(1);
    for (const mapped of both) mapped.release();
    expect(readFileSync("/proc/self/maps", "utf8")).not.toContain(path);
  });

  it("leaves this process's memory when it is told to, and comes again", () => {
    const { path, contents } = written("forgotten", 3 * 2 ** 20);
    const mapped = mapFile(path)!;
    const resident = (): number => {
      const [, own = ""] = readFileSync("/proc/self/smaps", "utf8").split(`${path}\n`);
      return Number(/Rss: +([0-9]+) kB/.exec(own)![1]);
    };
    expect(Buffer.compare(mapped.bytes, contents)).toBe(0);
    expect(resident()).toBeGreaterThanOrEqual(3 * 1024);
    mapped.forget();
    expect(resident()).toBe(0);
    expect(Buffer.compare(mapped.bytes, contents)).toBe(0);
    mapped.release();
    mapped.forget();
  });

  it("keeps its bytes when another file takes its place or it is removed", () => {
    const { path, contents } = written("replaced", 9000);
    const mapped = mapFile(path)!;
    const other = join(folder, "other");
    writeFileSync(other, new Uint8Array(10));
    renameSync(other, path);
    expect(Buffer.compare(mapped.bytes, contents)).toBe(0);
    rmSync(path);
    expect(Buffer.compare(mapped.bytes, contents)).toBe(0);
    mapped.release();
  });

  it("is not made of what is no plain file, empty or not there", () => {
    symlinkSync("nowhere", join(folder, "link"));
    writeFileSync(join(folder, "empty"), "");
    for (const path of [
      folder,
      "/dev/zero",
      ...["link", "empty", "none"].map((n) => join(folder, n)),
    ]) {
      expect(mapFile(path)).toBeUndefined();
    }
  });
});
