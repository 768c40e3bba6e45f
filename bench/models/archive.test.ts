import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { attempt } from "../../src/support/diagnostic.ts";
import { readPackageArchive } from "./archive.ts";
import { type ArchiveEntry, writeArchive } from "./archive-for-tests.ts";

const read = (archive: Uint8Array, limit = 1 << 20) =>
  attempt(() => readPackageArchive(archive, limit));

function checkRefused(archive: Uint8Array, words: RegExp, limit?: number): void {
  const result = read(archive, limit);
  expect(result.ok).toBe(false);
  if (result.ok) return;
  expect(result.diagnostics[0]!.code).toBe("FET003");
  expect(result.diagnostics[0]!.message).toMatch(words);
}

describe("readPackageArchive", () => {
  test("gives the files below the package folder", () => {
    const long = `package/${"deep/".repeat(25)}model.onnx`;
    const result = read(
      writeArchive([
        { path: "package/a.txt", body: "first" },
        { path: "package/empty", body: "" },
        { path: long, body: "x".repeat(1025) },
        { path: "package/folder/", body: "", type: "5" },
      ]),
    );
    expect(result.ok).toBe(true);
    if (!result.ok) return;
    expect([...result.value.keys()]).toEqual(["a.txt", "empty", long.slice("package/".length)]);
    expect(Buffer.from(result.value.get("a.txt")!).toString()).toBe("first");
    expect(result.value.get(long.slice("package/".length))!.length).toBe(1025);
  });

  test.each<[string, ArchiveEntry, RegExp]>([
    ["a path that climbs", { path: "package/../../x", body: "" }, /leaves the package/],
    ["an absolute path", { path: "/etc/passwd", body: "" }, /leaves the package/],
    ["a backslash path", { path: "package\\..\\x", body: "" }, /leaves the package/],
    ["a symbolic link", { path: "package/x", body: "", type: "2" }, /no regular file/],
    ["a hard link", { path: "package/x", body: "", type: "1" }, /no regular file/],
  ])("refuses %s", (_what, entry, words) => {
    checkRefused(writeArchive([entry]), words);
  });

  test("refuses what decompresses past the limit, is cut off, or is no archive", () => {
    const archive = writeArchive([{ path: "package/a", body: "y".repeat(5000) }]);
    checkRefused(archive, /does not decompress/, 1000);
    checkRefused(archive.subarray(0, archive.length - 20), /does not decompress/);
    checkRefused(new TextEncoder().encode("<html>"), /does not decompress/);
    const damaged = writeArchive([{ path: "package/a", body: "z" }], { damageHeader: true });
    checkRefused(damaged, /checksum/);
    const short = gzipSync(new Uint8Array(512).fill(0x41));
    checkRefused(short, /a number of a header/);
  });
});
