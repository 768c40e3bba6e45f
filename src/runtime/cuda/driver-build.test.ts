import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { driverBuild, driverFile } from "./driver-build.ts";

const maps = `55d0c8a00000-55d0c8a01000 r--p 00000000 08:01 1 /usr/bin/node
7f0000000000-7f0000100000 r-xp 00000000 08:01 42 /usr/lib/libcudart.so.13
7f1000000000-7f1000100000 r-xp 00000000 08:01 43 /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
7f2000000000-7f2000100000 rw-p 00000000 00:00 0
`;

describe("the build of the driver", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "driver-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("is told by the file that is mapped into the process", () => {
    expect(driverFile("linux", () => maps)).toBe("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04");
    expect(driverFile("linux", () => "")).toBeUndefined();
    expect(driverFile("win32")).toMatch(/nvcuda\.dll$/);
  });

  it("differs between releases, and between files of one name", () => {
    const [first, second] = ["libcuda.so.580.65.06", "libcuda.so.580.159.04"].map((name) => {
      const path = join(folder, name);
      writeFileSync(path, "library");
      utimesSync(path, 1000, 1000);
      return path;
    }) as [string, string];
    const [a, b] = [driverBuild("linux", first), driverBuild("linux", second)];
    expect(a).toContain("580.65.06");
    expect(a).not.toBe(b);
    utimesSync(first, 2000, 2000);
    expect(driverBuild("linux", first)).not.toBe(a);
  });

  it("is empty where the file cannot be seen", () => {
    expect(driverBuild("linux", join(folder, "none"))).toBe("");
  });
});
