import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseGolden } from "../../../test/golden/golden-sections.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { architectures } from "../../target/architectures/index.ts";
import { targets } from "../../target/index.ts";
import type { BlockLimits } from "../../target/target.ts";
import { emitPtx } from "./emit-program.ts";
import type { PtxModule } from "./ptx-module.ts";

function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/program/${name}.txt`, import.meta.url), "utf8");
}

function emit(text: string, target: string, limits?: BlockLimits) {
  const read = parseProgram(text);
  if (!read.ok) throw new Error(read.diagnostics.map(formatDiagnostic).join("\n"));
  return emitPtx(read.value, architectures.get(target)!, limits);
}

function emitted(text: string, target: string): PtxModule {
  const result = emit(text, target);
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

function refusals(text: string, target: string): string[] {
  const result = emit(text, target);
  return result.ok ? [] : result.diagnostics.map((d) => `${d.code} ${d.message}`);
}

test("the pipelined matrix kernel: parameters, shared memory, threads and counts", () => {
  const [kernel] = emitted(golden("matmul-pipelined"), "sm_90a").kernels;
  expect(kernel).toMatchObject({
    name: "main",
    threads: 256,
    cluster: 1,
    cooperative: false,
    staticSharedBytes: 0,
    maxRegisters: 255,
    counts: {
      wgmma: 4,
      wgmmaWaits: 2,
      mma: 0,
      tensorCopies: 3,
      peerStores: 0,
      asyncCopies: 0,
      matrixLoads: 0,
    },
  });
  expect(kernel!.dynamicSharedBytes).toBe(
    2 * 64 * 64 * 2 + 2 * 8 * 64 * 2 + 64 * 8 * 4 + 32 + 1008,
  );
  expect(kernel!.parameters.map((p) => p.kind)).toEqual([
    "tensorMap",
    "tensorMap",
    "buffer",
    "tensorMap",
  ]);
  expect(kernel!.parameters[0]).toMatchObject({ name: "x", box: [64, 64], swizzleBytes: 128 });
  expect(kernel!.grid.map((e) => e.key)).toEqual(["2", "1", "1"]);
});

test("what an architecture lacks is refused by name", () => {
  const [first] = refusals(golden("matmul-pipelined"), "sm_80");
  expect(first).toContain("EMT001");
  expect(refusals(golden("matmul-pipelined"), "sm_120a").join()).toContain("it has no wgmma");
  expect(refusals(golden("megakernel"), "gfx942").join()).toContain("takes no PTX");
});

test("kernels of a module are launched as their tasks say", () => {
  const module = emitted(golden("megakernel"), "sm_80");
  expect(module.kernels.map((k) => k.name)).toEqual([
    ...["init", "gate", "act", "down", "sample", "double", "finish"],
  ]);
  expect(module.kernels.every((k) => k.cooperative && k.threads === 32)).toBe(true);
  // The weights of a layer come through the table's name.
  expect(module.kernels[1]!.parameters).toContainEqual({ kind: "buffer", name: "w" });
  expect(module.text).toContain(".target sm_80");
});

test("a grid whose blocks wait for each other is no larger than what the machine holds (PRG042)", () => {
  const meeting = (grid: string): string => `program p for "h200" {
        parameter N in 1 to 4000
        buffer y : output memory f32 [4096] source "y"
        kernel k region "r" {
          grid ${grid}
          buffer s : scratch shared f32 [24576]
          role main copies 1 threads 128 {
            store s[0] = f32(0)
            barrier grid
            store y[0] = load.f32 s[0]
          }
        }
        tasks { launch k after previous }
      }`;
  const codes = (grid: string): readonly string[] => {
    const made = emit(meeting(grid), "sm_90a", targets.get("h200")!.blocks);
    return made.ok ? [] : made.diagnostics.map((d) => `${d.code} ${d.notes.join()}`);
  };
  // Two blocks of 96 KiB for each of 132 multiprocessors.
  expect(codes("blocks (b < 264) resident")).toEqual([]);
  expect(codes("blocks (b < 265) resident")).toEqual([
    "PRG042 132 multiprocessors hold 264 of them at once, 2 each",
  ]);
  expect(codes("blocks (b < N) resident")).toHaveLength(1);
  expect(codes("blocks (b < 4000)")).toEqual([]);
  // Of eight groups of at least 16 multiprocessors each holds eight clusters of four.
  expect(codes("clusters (b < 256) cluster 4 resident")).toEqual([]);
  expect(codes("clusters (b < 260) cluster 4 resident")).toEqual([
    "PRG042 132 multiprocessors hold 256 of them at once, 2 each",
  ]);
});

test("the assembler does not copy out nests whose loads would take the registers, and leaves the rest to it", () => {
  const summing = (trips: number): string => `program p for "h200" {
    buffer x : input memory f32 [${64 * trips}] source "x"
    buffer y : output memory f32 [4] source "y"
    kernel k region "r" {
      grid blocks (b < 1)
      buffer sum : scratch register f32x4 []
      role main copies 1 threads 1 {
        store sum[] = f32x4(0)
        for i < ${trips} {
          for j < 4 {
            store sum[] = add(load.f32x4 sum[], load.f32x4 x[16*i + 4*j])
          }
        }
        store y[0] = load.f32x4 sum[]
      }
    }
    tasks { launch k after previous }
  }`;
  const stays = (trips: number): number =>
    emitted(summing(trips), "sm_90a").text.split('.pragma "nounroll"').length - 1;
  expect([stays(8), stays(9)]).toEqual([0, 1]);
});

test("quotients of several vectors share the reciprocals of the divisors they name, where these go through", () => {
  const divided = (body: string): string => `program p for "h200" {
    buffer x : input memory f32 [64] source "x"
    buffer y : output memory f32 [64] source "y"
    kernel k region "r" {
      grid blocks (b < 1)
      role main copies 1 threads 1 {
        let d = load.f32x4 x[0]
        ${body}
      }
    }
    tasks { launch k after previous }
  }`;
  const by = (at: number): string => `store y[${at}] = div(load.f32x4 x[${at}], d)`;
  const reciprocals = (body: string): number =>
    emitted(divided(body), "sm_90a").text.split("rcp.approx").length - 1;
  expect(reciprocals(by(4))).toBe(4);
  expect(reciprocals(`${by(4)} ${by(8)} ${by(12)}`)).toBe(4);
  // Other values, and what one branch has made, are not there for it.
  expect(reciprocals(`${by(4)} let e = load.f32x4 x[8] store y[8] = div(d, e)`)).toBe(8);
  expect(reciprocals(`if b - 1 >= 0 { ${by(4)} } ${by(8)}`)).toBe(8);
});

test("the assembler may take all registers, and moves nothing across barriers that come often without a loop", () => {
  const meeting = (body: string, threads: number): string => `program p for "h200" {
    buffer x : input memory f32 [96] source "x"
    buffer y : output memory f32 [96] source "y"
    kernel k region "r" {
      grid blocks (b < 1)
      role main copies 1 threads ${threads} {
        ${body}
        store y[0] = f32(0)
      }
    }
    tasks { launch k after previous }
  }`;
  const fenced = (body: string, threads = 256): readonly [number, number] => {
    const { text } = emitted(meeting(body, threads), "sm_90a");
    expect(text).toContain(".minnctapersm 1");
    const behindFences = text.match(/pmevent 0;\n\s*bar\.sync/g) ?? [];
    return [behindFences.length, text.split("bar.sync").length - 1];
  };
  const barriers = (n: number): string => "barrier instance\n".repeat(n);
  expect(fenced(barriers(16))).toEqual([0, 16]);
  expect(fenced(barriers(17))).toEqual([17, 17]);
  // Of 16 warps, what they leave each other in nine is more than the 128 registers of a thread.
  expect(fenced(barriers(8), 512)).toEqual([0, 8]);
  expect(fenced(barriers(9), 512)).toEqual([9, 9]);
  expect(fenced(`for i < 9 { ${barriers(17)} }`)).toEqual([0, 17]);
  expect(fenced(`for i < 9 unrolled { ${barriers(2)} }`)).toEqual([18, 18]);
});

test("elements below a byte are stored without their neighbours, which may be other threads'", () => {
  const text = (scope: "output memory" | "scratch local"): string => {
    const own = scope === "scratch local" ? "buffer q : scratch local i4 [64]" : "";
    const outside = scope === "scratch local" ? "" : 'buffer q : output memory i4 [64] source "q"';
    return `program p for "h200" {
      buffer x : input memory i4 [64] source "x"
      buffer y : output memory i4 [64] source "y"
      ${outside}
      kernel k region "r" {
        grid blocks (b < 1)
        ${own}
        role main copies 1 threads 64 as t {
          store q[t] = load.i4 x[t]
          store y[t] = load.i4 q[t]
        }
      }
      tasks { launch k after previous }
    }`;
  };
  const lines = emitted(text("output memory"), "sm_80").text.split("\n");
  const count = (part: string): number => lines.filter((l) => l.includes(part)).length;
  expect([count("red.relaxed.gpu.global.and.b32"), count("red.relaxed.gpu.global.or.b32")]).toEqual(
    [2, 2],
  );
  expect(count("st.global")).toBe(0);
  const mine = emitted(text("scratch local"), "sm_80").text;
  expect(mine.includes("st.local.u8") && mine.includes("ld.local.u8")).toBe(true);
});

function productOf(name: string): string {
  const text = readFileSync(new URL("../../../test/golden/products.txt", import.meta.url), "utf8");
  return [...parseGolden(text)].find(([section]) => section === name)![1];
}

/** What the text says of each multiplication: orders of both operands, strides and swizzle of the right one. */
function multiplications(name: string): readonly (readonly [string, string])[] {
  const code = emitted(productOf(name), "sm_90a").text;
  const lines = [
    ...code.matchAll(/wgmma\.mma_async\S* .*, %(d\d+), %(d\d+), %p\d+, 1, 1, (\d, \d);/g),
  ];
  return lines.map(([, , right, orders]) => {
    const [, high] = new RegExp(`mov\\.b64 %${right}, \\{%r\\d+, (\\d+)\\}`).exec(code)!;
    const fields = BigInt(high!);
    return [
      orders!,
      `${16n * (fields & 0x3fffn)} swizzle ${["", 128, 64, 32][Number(fields >> 30n)]}`,
    ];
  });
}

test("operands in panels: the instruction is told of their order, the descriptor of both strides", () => {
  // Eight rows of the depth of 64 bytes; of 128.
  const across = multiplications("by warpgroups, columns as neighbours");
  expect(across).toEqual(new Array(4).fill(["0, 1", "512 swizzle 64"]));
  const both = multiplications("by warpgroups, rows and columns as neighbours, results gathered");
  expect(both).toEqual(new Array(8).fill(["1, 1", "1024 swizzle 128"]));
  const rows = multiplications("by warpgroups, rows as neighbours, problems of a batch in turns");
  expect(rows).toEqual(new Array(4).fill(["1, 0", "1024 swizzle 128"]));
  const along = multiplications("by warpgroups");
  expect(along).toEqual(new Array(along.length).fill(["0, 0", "1024 swizzle 128"]));
});

test("a descriptor has the address of a block by itself: in a cluster its rank stands where the step is", () => {
  const text = emitted(
    productOf("by warpgroups, rows and columns as neighbours, results gathered"),
    "sm_90a",
  ).text;
  const [, masked] = /and\.b32 (%r\d+), %r\d+, 262143;/.exec(text) ?? [];
  expect(masked).toBeDefined();
  const [, units] = new RegExp(`shr\\.u32 (%r\\d+), ${masked}, 4;`).exec(text) ?? [];
  expect(text).toMatch(new RegExp(`or\\.b32 %r\\d+, ${units}, 65536;`));
});

test("the step from panel to panel is in bits 16 to 29 of a descriptor", () => {
  const program = (n: number, panels: number) => `program p for "sm_90a" {
    buffer y : output memory f32 [1] at caller + (0) source "y"
    kernel k region "k" {
      grid blocks (b < 1)
      buffer left : scratch shared bf16 [64, 64] swizzle 128
      buffer right : scratch shared bf16 [${panels}, 64, ${n / panels}] swizzle ${(2 * n) / panels}
      buffer sums : scratch register f32 [${n / 2}]
      role r copies 1 threads 128 as t {
        issue wgmma.set.trans.right.m64n${n}k16.f32.bf16(sums[0] box [${n / 2}], left[0, 0] box [64, 16], right[0, 0, 0] box [${panels}, 16, ${n / panels}]) group g
        commit g
        await g pending 0
        store y[0] = load.f32 sums[0]
      }
    }
    tasks { launch k after previous }
  }`;
  const stepOf = (n: number, panels: number): number => {
    const code = emitted(program(n, panels), "sm_90a").text;
    const sums = [...code.matchAll(/add\.s32 %r\d+, %r\d+, (\d{6,});/g)].map(([, c]) => Number(c));
    const template = /or\.b32 %r\d+, %r\d+, (\d+);/.exec(code)![1]!;
    return 16 * ((Number(template) + sums.at(-1)!) >> 16);
  };
  expect(stepOf(128, 2)).toBe(64 * 128);
  expect(stepOf(96, 3)).toBe(64 * 64);
  expect(stepOf(48, 3)).toBe(64 * 32);
});

test("architectures older than what is written are refused", () => {
  expect(refusals(golden("matmul-pipelined"), "sm_75")).toEqual([
    "EMT001 sm_75 is older than what kernels are written for",
  ]);
});

test("copies and matrix loads at addresses that trap are refused", () => {
  const program = (from: string, pitch: number, at = "0"): string => `program p for "sm_80" {
    buffer x : input memory f16 [4096] at caller + (0) source "x"
    buffer y : output memory f16 [32] at caller + (8192) source "y"
    kernel k region "k" {
      grid blocks (b < 1)
      buffer tile : scratch shared f16 [16, ${pitch}]
      buffer words : scratch register f16 [8]
      role r copies 1 threads 32 as t {
        issue cp.async(tile[floorDiv(t, 2), 8*mod(t, 2)] box [8], x[${from}] box [8]) group c
        commit c
        await c pending 0
        barrier instance
        issue ldmatrix.x4.f16(words[0] box [8], tile[0, ${at}] box [16, 16]) sync
        store y[t] = load.f16 words[0]
      }
    }
    tasks { launch k after previous }
  }`;
  expect(refusals(program("8*t", 24), "sm_80")).toEqual([]);
  expect(refusals(program("8*t + 4", 24), "sm_80").join()).toMatch(/EMT001 .*16 bytes of x/);
  expect(refusals(program("8*t", 20), "sm_80").join()).toMatch(/EMT001 .*16 bytes of tile/);
  expect(refusals(program("8*t", 24, "4"), "sm_80").join()).toMatch(/EMT001 .*16 bytes of tile/);
});
