/**
 * The matrix-instruction table against the assembler: for every `.target` and family, all combinations of
 * type, accumulator and shape in one text. ptxas names the lines that it refuses; without them the rest has
 * to assemble, and that rest has to be exactly what the table calls legal. ptxas comes
 * from the package nvidia-cuda-nvcc of PyPI (PTXAS names another); without it a trial is skipped, in CI
 * it fails.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  checkMatrix,
  checkTensorMemory,
  type Legality,
  type MatrixRequest,
} from "../../src/plan/instructions/matrix-legality.ts";
import {
  accumulatorTypes,
  type MatrixRow,
  type OperandType,
  type PtxTarget,
  ptxTargets,
} from "../../src/plan/instructions/matrix-table.ts";
import {
  firstLine,
  spellKernel,
  spellMatrix,
  spellTensorMemory,
} from "../../src/plan/instructions/spell-matrix.ts";
import { steps } from "../../src/target/machine.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { findPtxas } from "../ptxas.ts";

interface Line {
  readonly text: string;
  readonly judge: (target: PtxTarget) => Legality;
}

/** Types that may meet in one instruction, each with each. */
const classes: readonly (readonly OperandType[])[] = [
  ["f16"],
  ["bf16"],
  ["tf32"],
  ["f64"],
  ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"],
  ["s8", "u8"],
  ["s4", "u4"],
  ["b1"],
];
/** Types of different classes, which nothing multiplies. */
const strangers: readonly (readonly [OperandType, OperandType])[] = [
  ["f16", "bf16"],
  ["bf16", "tf32"],
  ["f16", "e4m3"],
  ["s8", "s4"],
  ["s8", "e5m2"],
  ["f64", "tf32"],
  ["b1", "u4"],
  ["e2m1", "s4"],
];
const pairs = [
  ...classes.flatMap((c) => c.flatMap((a) => c.map((b) => [a, b] as const))),
  ...strangers,
];

function modifiersOf(a: OperandType, b: OperandType): readonly MatrixRow["modifier"][] {
  if (a === "b1" && b === "b1") return [undefined, ".and.popc", ".xor.popc"];
  return a.startsWith("e") && b.startsWith("e") ? [undefined, ".kind::f8f6f4"] : [undefined];
}

function lineOf(request: MatrixRequest): Line {
  return { text: spellMatrix(request), judge: (target) => checkMatrix(request, target) };
}

function mmaLines(): readonly Line[] {
  const lines: Line[] = [];
  for (const [a, b] of pairs) {
    for (const modifier of modifiersOf(a, b)) {
      for (const accumulator of accumulatorTypes) {
        for (const m of [8, 16]) {
          for (const k of [4, 8, 16, 32, 64, 128, 256]) {
            const some = modifier && { modifier };
            lines.push(lineOf({ family: "mma", a, b, accumulator, m, n: 8, k, ...some }));
          }
        }
      }
    }
  }
  return lines;
}

function wgmmaLines(): readonly Line[] {
  const lines: Line[] = [];
  for (const [a, b] of pairs) {
    for (const modifier of modifiersOf(a, b).filter((x) => x !== ".kind::f8f6f4")) {
      for (const accumulator of accumulatorTypes) {
        for (const k of [8, 16, 32, 64, 256]) {
          const all = k === 16 && a === "f16" ? steps(4, 264, 4) : [8, 40, 48, 256, 264];
          for (const n of all) {
            const some = modifier && { modifier };
            lines.push(lineOf({ family: "wgmma", a, b, accumulator, m: 64, n, k, ...some }));
          }
        }
      }
    }
  }
  return lines;
}

/** A kernel works in groups of one block or of two: the assembler takes no mixture. */
function tensorMemoryLines(group: number): readonly Line[] {
  const kinds = ["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4", "f64"];
  return kinds.flatMap((kind) =>
    [group, 3].flatMap((blocks) =>
      [undefined, "1X", "2X", "4X"].map((scaleVector): Line => {
        const request = { kind, blocks, ...(scaleVector && { scaleVector }) };
        return {
          text: spellTensorMemory(request),
          judge: (target) => checkTensorMemory(request, target),
        };
      }),
    ),
  );
}

const families: readonly (readonly [string, () => readonly Line[]])[] = [
  ["mma", mmaLines],
  ["wgmma", wgmmaLines],
  ["tcgen05 of one block", () => tensorMemoryLines(1)],
  ["tcgen05 of two blocks", () => tensorMemoryLines(2)],
];

export const instructionLegality: Campaign = {
  name: "instruction-legality",
  summary: "the matrix-instruction table against ptxas, a trial a target and family",
  targets: ["ptx"],
  defaultCount: ptxTargets.length * families.length,
  open: async () => {
    const ptxas = findPtxas();
    return (seed) => {
      if (ptxas.kind === "missing") return { kind: ptxas.finding, reason: ptxas.reason };
      const target = ptxTargets[Math.floor(seed / families.length) % ptxTargets.length]!;
      const [family, make] = families[seed % families.length]!;
      return judge(ptxas.path, target, family, make());
    };
  },
};

function judge(ptxas: string, target: PtxTarget, family: string, lines: readonly Line[]): Finding {
  const taken = new Set(assembling(ptxas, target, lines));
  const wrong = lines.filter((line) => taken.has(line) !== line.judge(target).legal);
  const [first] = wrong;
  if (!first) return passed;
  const said = first.judge(target);
  const mine = said.legal ? "legal here, ptxas refuses it" : `${said.why}, ptxas takes it`;
  const where = `sm_${target} ${family}: ${wrong.length} of ${lines.length} lines`;
  return { kind: "failed", reason: `${where}: ${first.text.slice(0, 80)}: ${mine}` };
}

/** The lines that assemble together. The assembler has several passes: each names lines of its own. */
function assembling(ptxas: string, target: PtxTarget, lines: readonly Line[]): readonly Line[] {
  let left = lines;
  for (;;) {
    const texts = left.map((l) => l.text);
    const refused = refusedLines(ptxas, target, texts);
    if (refused.size === 0) return left;
    left = left.filter((_, i) => !refused.has(i));
  }
}

/** Indices of the lines that the assembler names in an error. */
function refusedLines(
  ptxas: string,
  target: PtxTarget,
  lines: readonly string[],
): ReadonlySet<number> {
  const folder = mkdtempSync(join(tmpdir(), "wavetile-ptx-"));
  try {
    const text = join(folder, "k.ptx");
    writeFileSync(text, spellKernel(target, lines));
    const run = spawnSync(
      ptxas,
      [`-arch=sm_${target}`, "-O1", text, "-o", join(folder, "k.cubin")],
      {
        encoding: "utf8",
        maxBuffer: 1 << 28,
      },
    );
    if (run.error) throw run.error;
    const said = run.stdout + run.stderr;
    const refused = new Set(
      [...said.matchAll(/line (\d+); error/g)].map((m) => Number(m[1]) - firstLine),
    );
    if (run.status !== 0 && refused.size === 0) throw new Error(said.slice(0, 300));
    return refused;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
