/** Programs that assemblers judge, each for the architectures that it claims. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attentions, chosenAttentions } from "./attention-cases.ts";
import { attentionText, chosenAttentionText } from "./attention-programs.ts";
import { type GemmSchedule, gemmProgram } from "./gemm-program.ts";
import type { Making } from "./making.ts";
import { openAttentions, openProducts } from "./open-cases.ts";
import * as products from "./product-cases.ts";
import { productText } from "./product-programs.ts";
import * as lines from "./row-cases.ts";
import {
  countingText,
  foldText,
  groupNormText,
  openMapText,
  rowsText,
  scanText,
  selectionText,
} from "./row-programs.ts";
import { scatterText } from "./scatter-programs.ts";
import { oddProgram, rowNormProgram, warpGemmProgram } from "./simt-programs.ts";
import { turnText } from "./turn-programs.ts";

export const targets = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"] as const;

export interface Entry {
  readonly name: string;
  readonly text: (making?: Making) => string;
  /** Architectures that have what it needs; the others have to refuse it. */
  readonly claims: readonly string[];
}

function golden(name: string): string {
  return readFileSync(join(import.meta.dirname, `../../test/golden/program/${name}.txt`), "utf8");
}

const schedule: GemmSchedule = {
  consumers: 2,
  columns: 256,
  stages: 4,
  cluster: 2,
  clusters: 66,
  group: 8,
  registers: [24, 240],
};

function gemm(name: string, change: Partial<GemmSchedule>, size = 4096): Entry {
  const shape = { m: size, n: size, k: size };
  const text = (): string => gemmProgram(shape, { ...schedule, ...change });
  return { name: `gemm ${name}`, text, claims: ["sm_90a"] };
}

/** The axes of an operand of a product, with eight problems where there is a batch. */
function axesOf(letters: string, [m, n, k]: products.Given): readonly number[] {
  const extents: Readonly<Record<string, number>> = { b: 8, i: m, j: n, k };
  return letters
    .trim()
    .split(" ")
    .map((letter) => extents[letter]!);
}

function product(how: string, [m, n, k]: products.Given, dtype: "f32" | "bf16" | "f16"): Entry {
  const equation = "i k, j k -> i j";
  const text = (making?: Making): string =>
    productText({ equation, left: [m, k], right: [n, k], dtype, how }, making);
  return {
    name: `product ${m}x${n}x${k} ${how}`,
    text,
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  };
}

/** A product as the search chooses it. */
function chosen(
  [m, n, k]: products.Given,
  dtype: "f32" | "bf16" | "f16",
  claims: readonly string[],
): Entry {
  const given = { equation: "i k, k j -> i j", left: [m, k], right: [k, n], dtype };
  return {
    name: `product ${m}x${n}x${k} of ${dtype}`,
    text: (making?: Making) => productText(given, making),
    claims,
  };
}

/** Architectures whose text has what a schedule of attention says. */
function claimsOf(how: string): readonly string[] {
  if (how.startsWith("by wgmma")) return ["sm_90a"];
  return how.includes("parts") ? ["sm_90a", "sm_100a", "sm_120a"] : targets;
}

export const suite: readonly Entry[] = [
  gemm("128x256 in clusters of 2", {}),
  gemm("128x256", { cluster: 1, clusters: 132 }),
  gemm("128x128, 6 stages", { columns: 128, stages: 6 }),
  gemm("64x256, 5 stages", { consumers: 1, stages: 5, cluster: 1, registers: [40, 232] }),
  gemm("192x128, ragged", { consumers: 3, columns: 128, registers: [32, 160] }, 1000),
  gemm("128x64, 3 stages", { columns: 64, stages: 3 }, 776),
  { name: "golden pipelined", text: () => golden("matmul-pipelined"), claims: ["sm_90a"] },
  { name: "golden megakernel", text: () => golden("megakernel"), claims: targets },
  { name: "golden on CPU threads", text: () => golden("matmul-bias-relu-cpu"), claims: targets },
  {
    name: "golden launches that overlap",
    text: () => golden("dependents"),
    claims: ["sm_90a", "sm_100a", "sm_120a"],
  },
  { name: "gemm of warps", text: () => warpGemmProgram(512, 512, 512), claims: targets },
  ...products.products.map(([how, given, dtype]) => product(how, given, dtype)),
  ...products.odd.map(([given, dtype]) => chosen(given, dtype, targets)),
  ...products.filledUp.map(([given, dtype]) => chosen(given, dtype, ["sm_90a"])),
  ...products.turned.map(([how, equation, given]) => ({
    name: `product ${given.join("x")} ${equation} ${how}`,
    text: (making?: Making) => {
      const [left, right] = equation.split(/,|->/).map((letters) => axesOf(letters, given));
      return productText({ equation, left: left!, right: right!, dtype: "bf16", how }, making);
    },
    claims: ["sm_90a"],
  })),
  ...products.ofBytes.map(([how, of]) => ({
    name: `product of ${of} ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation: "i k, j k -> i j", left: [1000, 336], right: [776, 336], dtype: "bf16" },
          ...{ of, how: `by wgmma tile ${how}` },
        },
        making,
      ),
    claims: ["sm_90a"],
  })),
  ...products.byWarps.map(([how, of, ofRight, depth]) => ({
    name: `product of ${of} and ${ofRight} by mma ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{
            equation: "i k, j k -> i j",
            left: [1000, depth],
            right: [776, depth],
            dtype: "bf16",
          },
          ...{ of, ofRight, how: `by mma tile ${how}` },
        },
        making,
      ),
    claims: products.withByteFloats,
  })),
  ...products.ofIntegers.map(([how, of, ofRight, dtype]) => ({
    name: `product of ${of} and ${ofRight} ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation: "i k, j k -> i j", left: [1000, 336], right: [776, 336], dtype },
          ...{ of, ofRight, how },
        },
        making,
      ),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...products.grouped.map(([how, equation, right]) => ({
    name: `grouped product ${equation} ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation, left: [40, 128, 512], right, dtype: "bf16", how },
          ...{ isPicked: true, isWeight: true },
        },
        making,
      ),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...products.made.map(([front, how, [m, n, k], dtype]) => ({
    name: `product ${m}x${n}x${k} of ${front} ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation: "i k, j k -> i j", left: [m, k], right: [n, k], dtype, how, front },
        },
        making,
      ),
    claims: targets,
  })),
  // Divisions of many results must not become calls beside wgmma; loads of operands stay inside the result.
  ...products.gated.map((how) => ({
    name: `gated product ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation: "i k, j k -> i j", left: [1000, 320], right: [776, 320], dtype: "bf16" },
          ...{ how, behind: "gate" },
        },
        making,
      ),
    claims: ["sm_90a"],
  })),
  ...products.finished.map(([behind, how]) => ({
    name: `product with ${behind} behind it, ${how}`,
    text: (making?: Making) =>
      productText(
        {
          ...{ equation: "i k, j k -> i j", left: [1000, 320], right: [768, 320], dtype: "bf16" },
          ...{ how, behind },
        },
        making,
      ),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...lines.rows.map((given) => ({
    name: `${given.op} ${given.dtype} ${given.how}`,
    text: (making?: Making) => rowsText(given, making),
    claims: given.how.includes("parts") ? ["sm_90a", "sm_100a", "sm_120a"] : targets,
  })),
  ...lines.groupNorms.map((given) => ({
    name: `groupNorm ${given.dtype} ${given.shape.join(" ")} of ${given.groups} ${given.how}`,
    text: (making?: Making) => groupNormText(given, making),
    claims: given.how.includes("parts") ? ["sm_90a", "sm_100a", "sm_120a"] : targets,
  })),
  ...lines.scans.map((given) => ({
    name: `sums up to each ${given.dtype} ${given.shape.join(" ")} along ${given.axis}, all kernels`,
    text: (making?: Making) => scanText(given, making),
    claims: targets,
  })),
  ...lines.folds.map((given) => ({
    name: `${given.kind ?? "sum"} of ${given.dtype} ${given.shape.join(" ")} over ${given.axes.join(" ")}, all kernels`,
    text: (making?: Making) => foldText(given, making),
    claims: targets,
  })),
  ...lines.scatters.map((given) => ({
    name: `updates ${given.reduction} ${given.dtype} ${given.updates} ${given.shape.join(" ")}, all kernels`,
    text: (making?: Making) => scatterText(given, making),
    claims: targets,
  })),
  { name: "map of open extents", text: openMapText, claims: targets },
  ...lines.turns.map((given) => ({
    name: `transpose ${given.dtype} ${given.shape.join(" ")}${given.added ? " added" : ""} ${given.how ?? "as chosen"}`,
    text: (making?: Making) => turnText(given, making),
    claims: targets,
  })),
  ...lines.selections.map((given) => ({
    name: `first ${given.k} of ${given.dtype} ${given.shape.join(" ")}`,
    text: (making?: Making) => countingText(given, making),
    claims: targets,
  })),
  ...lines.selected.map((given) => ({
    name: `first ${given.k} of ${given.dtype} ${given.shape.join(" ")}, all kernels`,
    text: (making?: Making) => selectionText(given, making),
    claims: targets,
  })),
  ...chosenAttentions.map((given) => ({
    name: `attention bounded ${given.depth} ${given.rows} ${given.causal ? "causal" : "full"}${given.mask ? " masked" : ""}`,
    text: (making?: Making) => chosenAttentionText(given, making),
    claims: ["sm_90a"],
  })),
  ...attentions.map((given) => ({
    name: `attention ${given.dtype} ${given.depth} ${given.how}`,
    text: (making?: Making) => attentionText(given, making),
    claims: claimsOf(given.how),
  })),
  ...openProducts.map((given) => ({
    name: `open product ${given.equation} ${given.dtype} ${given.how}`,
    text: (making?: Making) => productText(given, making),
    claims: claimsOf(given.how!),
  })),
  ...openAttentions.map((given) => ({
    name: `open attention ${given.dtype} ${given.depth} ${given.how}`,
    text: (making?: Making) => attentionText(given, making),
    claims: claimsOf(given.how),
  })),
  { name: "row norm", text: () => rowNormProgram(4096), claims: targets },
  { name: "odd kernels", text: () => oddProgram, claims: targets },
];
