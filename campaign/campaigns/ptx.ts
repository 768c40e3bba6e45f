/**
 * PTX against NVIDIA's assembler: each program of the suite for each architecture that it claims assembles
 * without spills and without a word about lost performance, stays within the registers that it states, and has
 * in machine code exactly the matrix instructions, waits and tensor copies that the program says (counted
 * here from the statements, there by nvdisasm). What the emitter estimates of registers is compared with what ptxas
 * takes: by kernel, and in the middle of all. An architecture that lacks what a program needs refuses it by
 * name. Most of the time goes into proving the programs first: target `sampled` proves one of twelve, by
 * PROPERTY_SEED, and has the others judged as they are.
 */
import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers/promises";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import type { PtxCounts, PtxModule } from "../../src/emit/ptx/ptx-module.ts";
import type { Kernel, Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import type { Statement } from "../../src/program/statement.ts";
import { unrollLoops } from "../../src/program/unroll.ts";
import { childBodies } from "../../src/program/walk.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { architectures } from "../../src/target/architectures/index.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { type Judges, judge } from "../ptx/judge.ts";
import { Disassembler, limited } from "../ptx/machine-code.ts";
import { Making } from "../ptx/making.ts";
import { suite, targets } from "../ptx/suite.ts";
import { casesOf, programText, valueTypes } from "../ptx/value-cases.ts";
import { findNvdisasm, findPtxas } from "../ptxas.ts";

interface Trial {
  readonly name: string;
  readonly text: (proving: Proving) => string;
  readonly claimed: boolean;
  readonly target: string;
}

/** Of each program for every architecture; the operators of each type are dealt out over them. */
const programs: readonly (readonly Trial[])[] = [
  ...suite.map(({ name, text, claims }, i) => {
    const once = lazy((proving) => text(proving(i)));
    return targets.map((target) => ({
      name,
      text: once,
      target,
      claimed: claims.includes(target),
    }));
  }),
  ...valueTypes.map((dtype) =>
    targets.map((target, part) => {
      const text = (): string =>
        programText(casesOf(dtype).filter((_, i) => i % targets.length === part));
      return { name: `values of ${dtype}`, text, target, claimed: true };
    }),
  ),
];

/** A third of the programs behind another: neighbours are alike, so that each third has some of all kinds. */
const thirds = 3;
const trials = Array.from({ length: thirds }, (_, third) =>
  programs.filter((_, i) => i % thirds === third).flat(),
).flat();

/** How the program of a number is made. */
type Proving = (program: number) => Making;

/** Compiled for the first of the architectures that ask. */
function lazy(text: (proving: Proving) => string): (proving: Proving) => string {
  let made: string | undefined;
  return (proving) => {
    made ??= text(proving);
    return made;
  };
}

/** One of so many programs is proved where they are sampled. */
const sampled = 12;

function provingFor(target: string): Proving {
  const [proved, unproved] = [new Making(), new Making(false)];
  if (target === "ptx") return () => proved;
  const turn = Number(process.env.PROPERTY_SEED ?? 0) % sampled;
  return (program) => (program % sampled === turn ? proved : unproved);
}

/** What is estimated of registers over what ptxas took, of all kernels so far. */
const ofTaken: number[] = [];

export const ptx: Campaign = {
  name: "ptx",
  summary: "programs as PTX through ptxas and nvdisasm for every architecture they claim",
  targets: ["ptx", "sampled"],
  defaultCount: trials.length,
  // Programs are made while the judges look at the last ones; machine code waits for more of its architecture.
  atOnce: 480,
  closing: () => describeEstimates(ofTaken),
  open: async (asked) => {
    const proving = provingFor(asked);
    const [ptxas, nvdisasm] = [findPtxas(), findNvdisasm()];
    const limit = limited(1 + availableParallelism());
    // Judges are heard between two programs.
    const inTurn = limited(1);
    const disassembler =
      nvdisasm.kind === "missing" ? undefined : new Disassembler(nvdisasm.path, limit);
    return async (seed) => {
      if (ptxas.kind === "missing") return { kind: ptxas.finding, reason: ptxas.reason };
      if (nvdisasm.kind === "missing") return { kind: nvdisasm.finding, reason: nvdisasm.reason };
      const judges = { ptxas: ptxas.path, disassembler: disassembler!, limit };
      const trial = trials[seed % trials.length]!;
      return inTurn(async () => {
        await setImmediate();
        return trial.text(proving);
      }).then((text) => run(trial, text, judges));
    };
  },
};

async function run(
  { name, target, claimed }: Trial,
  text: string,
  judges: Judges,
): Promise<Finding> {
  const where = `${name} for ${target}`;
  const read = parseProgram(text);
  if (!read.ok) return failed(`${where}: ${read.diagnostics.map(formatDiagnostic).join(" ")}`);
  const architecture = architectures.get(target)!;
  const emitted = emitPtx(read.value, architecture);
  if (!emitted.ok) {
    const said = emitted.diagnostics.map(formatDiagnostic).join(" ");
    const isRefusal = emitted.diagnostics.every((d) => d.code === "EMT001");
    return !claimed && isRefusal ? passed : failed(`${where}: ${said}`);
  }
  if (!claimed) return failed(`${where}: emitted, although it needs what the target lacks`);
  const wrong =
    countsDiffer(read.value, emitted.value) ??
    (await judge(emitted.value, architecture, judges, (x) => void ofTaken.push(x)));
  return wrong === undefined ? passed : failed(`${where}: ${wrong}`);
}

/** Estimates of so many kernels say something of their middle, which may be a fifth off. */
const [enough, mostOff] = [100, 1.2] as const;

function describeEstimates(found: readonly number[]): readonly Finding[] {
  if (found.length === 0) return [];
  const sorted = found.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))]!;
  const told = [0, 0.05, 0.5, 0.95, 1].map((share) => at(share).toFixed(2)).join(", ");
  const note =
    `registers as estimated over those that ptxas took, ${found.length} kernels: ` +
    `${told} (least, of a twentieth, middle, of all but a twentieth, most)`;
  const isOff = at(0.5) > mostOff || at(0.5) < 1 / mostOff;
  return [found.length >= enough && isOff ? failed(note) : { kind: "passed", note }];
}

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}

/** The counts that the emitter states against those of the statements. */
function countsDiffer(program: Program, module: PtxModule): string | undefined {
  for (const kernel of module.kernels) {
    const source = program.kernels.find((k) => k.name === kernel.name)!;
    const wanted = JSON.stringify(countStatements(source));
    const stated = JSON.stringify(kernel.counts);
    if (wanted !== stated)
      return `kernel ${kernel.name} states ${stated}, the program says ${wanted}`;
  }
  return undefined;
}

function countStatements(kernel: Kernel): PtxCounts {
  const counts = {
    wgmma: 0,
    wgmmaWaits: 0,
    mma: 0,
    tensorCopies: 0,
    peerStores: 0,
    asyncCopies: 0,
    matrixLoads: 0,
  };
  for (const role of unrollLoops(kernel).roles) {
    const groups = new Set<string>();
    const visit = (body: readonly Statement[]): void => {
      for (const s of body) {
        if (s.kind === "intrinsic") {
          if (s.intrinsic.startsWith("wgmma.")) counts.wgmma++;
          if (s.intrinsic.startsWith("mma.")) counts.mma++;
          if (/^bulk\.(load|store)/.test(s.intrinsic)) counts.tensorCopies++;
          if (s.intrinsic.startsWith("peer.store")) counts.peerStores++;
          if (s.intrinsic === "cp.async") counts.asyncCopies++;
          if (s.intrinsic.startsWith("ldmatrix.")) counts.matrixLoads++;
          if (s.intrinsic.startsWith("wgmma.") && s.completion.kind === "group") {
            groups.add(s.completion.group);
          }
        }
        if (s.kind === "waitGroup" && groups.has(s.group)) counts.wgmmaWaits++;
        const bodies = childBodies(s);
        visit(isFirstOrNext(s) ? bodies[1]! : bodies.flat());
      }
    };
    visit(role.body);
  }
  return counts;
}

/** A multiplication that forgets the old sums or keeps them, by a condition: one instruction. */
function isFirstOrNext(s: Statement): boolean {
  if (s.kind !== "if" || s.then.length !== 1 || s.else.length !== 1) return false;
  const [a, b] = [s.then[0]!, s.else[0]!];
  if (a.kind !== "intrinsic" || b.kind !== "intrinsic") return false;
  return a.intrinsic.startsWith("wgmma.set.") && b.intrinsic === a.intrinsic.replace("set.", "");
}
