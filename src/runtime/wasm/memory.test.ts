import { afterEach, describe, expect, it, vi } from "vitest";
import { probeWasmFeatures } from "./features.ts";
import { allocateMemory, bytesPerPage } from "./memory.ts";

afterEach(() => vi.unstubAllGlobals());

describe("probeWasmFeatures", () => {
  it("finds what Node 20 and later have", () => {
    const features = probeWasmFeatures();
    expect(features).toMatchObject({ simd: true, threads: true, maxPages: 65536 });
    const major = Number(process.versions.node.split(".")[0]);
    expect(features.relaxedFma).toBe(major >= 21);
  });
});

describe("allocateMemory", () => {
  it("gives whole zeroed pages, shared when asked", () => {
    const plain = allocateMemory(bytesPerPage + 1, false);
    expect(plain.ok && plain.value.buffer.byteLength).toBe(2 * bytesPerPage);
    const shared = allocateMemory(0, true);
    expect(shared.ok && shared.value.buffer).toBeInstanceOf(SharedArrayBuffer);
  });

  it("refuses more than 4 GiB (RUN001)", () => {
    expect(allocateMemory(2 ** 32 + 1, true)).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN001" }],
    });
  });

  it("says when the engine refuses (RUN002)", () => {
    const Memory = class {
      constructor() {
        throw new RangeError("could not allocate memory");
      }
    };
    vi.stubGlobal("WebAssembly", { Memory });
    expect(allocateMemory(65536, false)).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN002" }],
    });
  });
});
