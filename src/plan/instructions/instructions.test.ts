import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { architectures } from "../../target/architectures/index.ts";
import {
  checkMatrix,
  checkTensorMemory,
  isAvailable,
  type MatrixRequest,
} from "./matrix-legality.ts";
import {
  type AccumulatorType,
  matrixRows,
  type OperandType,
  type PtxTarget,
} from "./matrix-table.ts";
import {
  chooseSwizzle,
  columnWavefronts,
  isBijection,
  swizzleAddress,
  swizzleSpans,
  wavefrontsOf,
} from "./swizzle.ts";
import { checkTensorMap, type TensorMapType } from "./tensor-map-legality.ts";

describe("matrix instructions", () => {
  const bf16: MatrixRequest = {
    family: "wgmma",
    a: "bf16",
    b: "bf16",
    accumulator: "f32",
    m: 64,
    n: 256,
    k: 16,
  };

  it("compare architectures as numbers", () => {
    expect(isAvailable(89, "100")).toBe(true);
    expect(isAvailable(100, "90")).toBe(false);
    expect(isAvailable(["90a"], "90")).toBe(false);
  });

  it("exist or not, and it is said why not", () => {
    const why = (change: Partial<MatrixRequest>, target: PtxTarget = "90a"): string => {
      const found = checkMatrix({ ...bf16, ...change }, target);
      return found.legal ? "legal" : found.why;
    };
    expect(why({})).toBe("legal");
    expect(why({}, "90")).toBe("sm_90 has no wgmma.m64n256k16 of bf16 and bf16");
    expect(why({}, "100a")).toContain("sm_100a has no wgmma");
    expect(why({ n: 260 })).toBe("wgmma of bf16 and bf16 has no shape m64n260k16");
    expect(why({ accumulator: "f16" })).toBe("wgmma of bf16 and bf16 has no f16 sums");
    expect(why({ a: "f16" })).toBe("wgmma does not multiply f16 by bf16");
    expect(why({ family: "mma", m: 16, n: 8 }, "80")).toBe("legal");
    expect(why({ family: "mma", m: 16, n: 8 }, "75")).toContain("sm_75 has no mma");
  });

  it("of tensor memory are judged by kind, blocks, scales and shape", () => {
    const legal = (request: Parameters<typeof checkTensorMemory>[0], target: PtxTarget = "100a") =>
      checkTensorMemory(request, target).legal;
    const f16 = { kind: "f16", blocks: 1 };
    expect(legal(f16)).toBe(true);
    expect(legal(f16, "120a")).toBe(false);
    expect(legal(f16, "90a")).toBe(false);
    expect(legal({ kind: "i8", blocks: 1 }, "103a")).toBe(false);
    expect(legal({ kind: "mxf4", blocks: 2, scaleVector: "2X" })).toBe(true);
    expect(legal({ kind: "mxf4", blocks: 2 })).toBe(false);
    expect(legal({ ...f16, scaleVector: "1X" })).toBe(false);
    expect(legal({ ...f16, blocks: 3 })).toBe(false);
    const shapes: readonly (readonly [number, number, number, boolean])[] = [
      [1, 64, 8, true],
      [1, 128, 8, false],
      [1, 128, 16, true],
      [1, 256, 16, false],
      [2, 256, 256, true],
      [2, 256, 264, false],
      [2, 128, 16, true],
    ];
    for (const [blocks, m, n, wanted] of shapes) {
      expect([m, n, legal({ kind: "f16", blocks, shape: { m, n, k: 16 } })]).toEqual([
        m,
        n,
        wanted,
      ]);
    }
    expect(legal({ ...f16, shape: { m: 128, n: 16, k: 32 } })).toBe(false);
    expect(legal({ kind: "i8", blocks: 1, shape: { m: 64, n: 40, k: 32 } })).toBe(false);
  });

  const spelled: Readonly<Record<string, readonly OperandType[]>> = {
    f16: ["f16"],
    bf16: ["bf16"],
    tf32: ["tf32"],
    f64: ["f64"],
    fp8: ["e4m3", "e5m2"],
    int8: ["s8", "u8"],
    int4: ["s4", "u4"],
  };

  it("are all listed in the data of the architectures", () => {
    let compared = 0;
    for (const { ptxTarget, matrixInstructions } of architectures.values()) {
      if (!ptxTarget) continue;
      const target = ptxTarget.replace("sm_", "") as PtxTarget;
      for (const row of matrixRows) {
        const operands = Object.keys(spelled).find((name) => spelled[name]!.includes(row.a[0]!));
        if (operands === undefined || row.modifier || !isAvailable(row.on, target)) continue;
        const name = { mma: "mma.sync", wgmma: "wgmma.mma_async" }[row.family];
        for (const sums of row.accumulators) {
          for (const [m, n, k] of product(row.m, row.n, row.k)) {
            const listed = matrixInstructions.some(
              (i) =>
                i.name === name &&
                i.operands === operands &&
                i.accumulators.some((a) => a.replace("int32", "s32") === sums) &&
                i.m.includes(m) &&
                i.n.includes(n) &&
                i.k.includes(k),
            );
            expect(listed, `${ptxTarget} ${name} ${operands} ${sums} m${m}n${n}k${k}`).toBe(true);
            compared++;
          }
        }
      }
    }
    expect(compared).toBeGreaterThan(300);
  });

  it("are those that the data of the architectures lists", () => {
    let compared = 0;
    for (const { ptxTarget, matrixInstructions } of architectures.values()) {
      for (const row of matrixInstructions) {
        const family = { "mma.sync": "mma", "wgmma.mma_async": "wgmma" }[row.name] as
          | "mma"
          | "wgmma"
          | undefined;
        const types = spelled[row.operands];
        if (!ptxTarget || !family || !types) continue;
        const target = ptxTarget.replace("sm_", "") as PtxTarget;
        for (const accumulator of row.accumulators) {
          for (const [m, n, k] of product(row.m, row.n, row.k)) {
            const sums = accumulator.replace("int32", "s32") as AccumulatorType;
            const request = { family, a: types[0]!, b: types[0]!, accumulator: sums, m, n, k };
            expect([target, request, checkMatrix(request, target)]).toEqual([
              target,
              request,
              { legal: true },
            ]);
            compared++;
          }
        }
      }
    }
    expect(compared).toBeGreaterThan(300);
  });
});

function product(
  m: readonly number[],
  n: readonly number[],
  k: readonly number[],
): (readonly [number, number, number])[] {
  return m.flatMap((a) => n.flatMap((b) => k.map((c) => [a, b, c] as const)));
}

describe("tensor maps", () => {
  it("are legal exactly where a driver encoded them (2,000 recorded answers)", () => {
    const path = join(import.meta.dirname, "fixtures/tensor-maps.txt");
    const lines = readFileSync(path, "utf8").split("\n");
    const wrong: string[] = [];
    let count = 0;
    for (const line of lines.filter((l) => l !== "" && !l.startsWith("#"))) {
      const [type, dims, strides, box, steps, swizzle, , address, status] = line.split(" | ");
      const numbers = (text: string): number[] => (text === "" ? [] : text.split(" ").map(Number));
      const found = checkTensorMap({
        type: type as TensorMapType,
        addressBytes: Number(address),
        dims: numbers(dims!),
        strides: numbers(strides!.trim()),
        box: numbers(box!),
        elementStrides: numbers(steps!),
        swizzleBytes: Number(swizzle),
      });
      if (found.legal !== (status === "0")) wrong.push(`${line}: ${JSON.stringify(found)}`);
      count++;
    }
    expect(wrong).toEqual([]);
    expect(count).toBe(2000);
  });

  it("have 1 to 5 axes, with a stride for all but the first", () => {
    const map = { type: "f16", addressBytes: 0, elementStrides: [1], swizzleBytes: 0 } as const;
    const one = { ...map, dims: [64], strides: [], box: [64] };
    expect(checkTensorMap(one)).toEqual({ legal: true });
    expect(checkTensorMap({ ...one, strides: [128] }).legal).toBe(false);
    expect(checkTensorMap({ ...one, dims: [] }).legal).toBe(false);
  });
});

describe("swizzles", () => {
  it("are bijections of every tile that they fit", () => {
    for (const span of swizzleSpans) expect(isBijection(4096, span)).toBe(true);
  });

  it("exchange chunks as the manual draws it", () => {
    expect(swizzleAddress(128 * 3 + 16 * 5 + 7, 128)).toBe(128 * 3 + 16 * (5 ^ 3) + 7);
    expect(swizzleAddress(128 * 3 + 16 * 5, 64)).toBe(128 * 3 + 64 + 16 * (1 ^ 3));
    expect(swizzleAddress(128 * 3 + 16 * 5, 32)).toBe(128 * 3 + 64 + 16 * (1 ^ 1));
    expect(swizzleAddress(1234, 0)).toBe(1234);
  });

  it("are chosen so that a column of eight rows has no conflict", () => {
    for (const rowBytes of [32, 64, 128, 256, 384, 512]) {
      expect(chooseSwizzle(rowBytes).wavefronts).toBe(1);
    }
    expect(columnWavefronts(128, 0)).toBe(8);
    expect(columnWavefronts(64, 0)).toBe(4);
    expect(chooseSwizzle(48)).toEqual({ span: 0, wavefronts: columnWavefronts(48, 0) });
    expect(wavefrontsOf([0, 16, 32, 48, 64, 80, 96, 112])).toBe(1);
    expect(wavefrontsOf([0, 128, 256, 384, 512, 640, 768, 896])).toBe(8);
  });
});
