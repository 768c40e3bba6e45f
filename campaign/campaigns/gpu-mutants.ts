/**
 * Whether faults in GPU programs are noticed without a GPU. Mutants are made from program texts by rule: a
 * wait dropped, its phase or its stage off by one, a fence, barrier, commit, signal or announcement dropped, a
 * group waited for too loosely, bytes or arrivals miscounted, a box shifted, a multicast that stays at home, a
 * swizzle of another span, a stage too few, a guard one off, zeros that are not stored. What the validator refuses by running all
 * threads, its proof by parts has to refuse as well. Each has to be caught by the validator, by the emitter's
 * refusal, or by a run of the program interpreter (a fault, or other numbers than the program as it
 * was) under one of a few schedules; the goldens' own faults by the validator and, where a run shows them,
 * by the interpreter too.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import { type ProgramOutcome, runProgram } from "../../src/interp/program.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import { encodeFloat } from "../../src/semantics/float-codec.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { architectures } from "../../src/target/architectures/index.ts";
import { parseGolden } from "../../test/golden/golden-sections.ts";
import {
  dependentFaults,
  megakernelFaults,
  type PlantedFault,
  pipelinedFaults,
} from "../../test/golden/program/faults.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { gemmProgram } from "../ptx/gemm-program.ts";
import { type Mutant, mutantsOf } from "../ptx/program-mutants.ts";
import { warpGemmProgram } from "../ptx/simt-programs.ts";

interface Subject {
  readonly name: string;
  readonly text: string;
  readonly target: string;
  /** It is proved in parts as well, as larger ones like it are. */
  readonly inParts?: boolean;
}

function golden(name: string): string {
  return readFileSync(join(import.meta.dirname, `../../test/golden/program/${name}.txt`), "utf8");
}

/** As the compiler makes them; golden, so that faults are planted without compiling. */
const kernels = ["products", "rows", "attention", "turns"].flatMap((name) => {
  const path = join(import.meta.dirname, `../../test/golden/${name}.txt`);
  return [...parseGolden(readFileSync(path, "utf8"))];
});

/** Small enough to be run thread by thread, large enough that every stage is used twice. */
const subjects: readonly Subject[] = [
  { name: "pipelined", text: golden("matmul-pipelined"), target: "sm_90a" },
  {
    name: "gemm in clusters",
    text: gemmProgram(
      { m: 128, n: 192, k: 192 },
      {
        consumers: 1,
        columns: 64,
        stages: 2,
        cluster: 2,
        clusters: 1,
        group: 1,
        registers: [24, 240],
      },
    ),
    target: "sm_90a",
  },
  {
    name: "gemm of two consumers",
    text: gemmProgram(
      { m: 128, n: 192, k: 192 },
      {
        consumers: 2,
        columns: 64,
        stages: 2,
        cluster: 1,
        clusters: 1,
        group: 1,
        registers: [40, 232],
      },
    ),
    target: "sm_90a",
  },
  { name: "gemm of warps", text: warpGemmProgram(64, 64, 160), target: "sm_80", inParts: true },
  ...kernels.map(([name, text]) => {
    const later = /issue mma\..*f8e/.test(text) ? "sm_89" : "sm_80";
    const target = /wgmma|grid clusters/.test(text) ? "sm_90a" : later;
    return { name, text, target, inParts: true };
  }),
];

type Trial = () => Finding;

const schedules = [1, 2, 3];

/** Trials of all subjects in turns, so that a few in a row are a sample of the whole. */
function makeTrials(mutantsFrom: (text: string) => readonly Mutant[]): readonly Trial[] {
  const rows: (readonly Trial[])[] = [
    ...subjects.map((subject) => [
      () => checkSound(subject),
      ...mutantsFrom(subject.text).map((mutant) => () => checkMutant(subject, mutant)),
    ]),
    pipelinedFaults.map((fault) => () => checkPlanted("matmul-pipelined", fault)),
    dependentFaults.map((fault) => () => checkPlanted("dependents", fault)),
    megakernelFaults.map((fault) => () => checkPlanted("megakernel", fault)),
  ];
  const longest = Math.max(...rows.map((r) => r.length));
  return Array.from({ length: longest }, (_, i) => rows.flatMap((r) => r[i] ?? [])).flat();
}

/** One of each kind of fault, at another of its places for the next PROPERTY_SEED. */
function oneOfEachKind(text: string): readonly Mutant[] {
  const turn = Number(process.env.PROPERTY_SEED ?? 0);
  const byKind = new Map<string, Mutant[]>();
  for (const mutant of mutantsOf(text))
    byKind.set(mutant.kind, [...(byKind.get(mutant.kind) ?? []), mutant]);
  return [...byKind.values()].map((some) => some[turn % some.length]!);
}

const targets: Readonly<Record<string, typeof mutantsOf>> = {
  ptx: mutantsOf,
  kinds: oneOfEachKind,
};

export const gpuMutants: Campaign = {
  name: "gpu-mutants",
  summary: "faults planted in GPU programs against the validator, the emitter and the interpreter",
  targets: Object.keys(targets),
  defaultCount: (target) => makeTrials(targets[target]!).length,
  open: async (target) => {
    const trials = makeTrials(targets[target]!);
    return (seed) => trials[seed % trials.length]!();
  },
};

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}

function parse(text: string): Program | undefined {
  const read = parseProgram(text);
  return read.ok ? read.value : undefined;
}

/** Sequences of columns, each for some rows: from its first one to the one behind its last. */
const [rowsTogether, columnsTogether] = [12, 25] as const;

function rangesOf(count: number, from: number): Uint8Array {
  const numbers = Int32Array.from(
    { length: count },
    (_, row) => columnsTogether * (Math.floor(row / rowsTogether) + from),
  );
  return new Uint8Array(numbers.buffer);
}

function bytesOf(count: number, dtype: string, rng: Rng): Uint8Array {
  if (dtype === "f8e4m3fn" || dtype === "f8e5m2")
    return Uint8Array.from({ length: count }, () => encodeFloat(dtype, rng.normal()));
  if (dtype === "bf16") {
    const values = Uint16Array.from({ length: count }, () => encodeFloat("bf16", rng.normal()));
    return new Uint8Array(values.buffer);
  }
  // Numbers of matrices, of which there are two or more.
  if (dtype === "i32")
    return new Uint8Array(Int32Array.from({ length: count }, () => rng.integer(0, 1)).buffer);
  // Lengths: the last step is a part of one.
  if (dtype === "i64")
    return new Uint8Array(BigInt64Array.from({ length: count }, () => 41n).buffer);
  if (dtype === "u8" || dtype === "i8")
    return Uint8Array.from({ length: count }, () => rng.integer(0, 255));
  return new Uint8Array(Float32Array.from({ length: count }, () => 0.1 + rng.uniform()).buffer);
}

type Sizes = Readonly<Record<string, number>>;

/** Of what a run decides: as many as there may be, and fewer, which end in another part of a tile. */
function sizesOf({ parameters }: Program): readonly Sizes[] {
  const at = (of: (p: Program["parameters"][number]) => number): Sizes =>
    Object.fromEntries(parameters.map((p) => [p.name, of(p)]));
  const most = at((p) => p.max);
  return parameters.length === 0 ? [most] : [most, at((p) => p.min + ((p.max - p.min) >> 1))];
}

/** The same inputs for a program and its mutants. */
function runOnce(program: Program, seed: number, sizes = sizesOf(program)[0]!): ProgramOutcome {
  const rng = new Rng(7);
  const values = new Map(Object.entries(sizes));
  const contents = new Map<string, Uint8Array>();
  for (const b of program.buffers) {
    if (b.kind !== "input" && b.kind !== "weight") continue;
    const count = b.shape.reduce((n, e) => n * evaluate(e, values), 1);
    const from = ["starts", "ends"].indexOf(b.name);
    contents.set(b.name, from < 0 ? bytesOf(count, b.dtype, rng) : rangesOf(count, from));
  }
  return runProgram(program, { parameters: sizes, contents, threads: 1, seed });
}

/** What runs of all sizes give. */
function printRuns(program: Program, seed: number): string {
  const runs = sizesOf(program).map((sizes) => printOutcome(runOnce(program, seed, sizes)));
  return runs.find((run) => run.startsWith("fault")) ?? runs.join("; ");
}

const clean = new Map<string, string>();

/** The outputs of the program as it was, in a form that compares. */
function cleanOutput({ name, text }: Subject): string {
  let output = clean.get(name);
  if (output === undefined) {
    output = printRuns(parse(text)!, 1);
    clean.set(name, output);
  }
  return output;
}

function printOutcome(outcome: ProgramOutcome): string {
  if (outcome.kind === "fault") return `fault ${outcome.fault.kind}: ${outcome.fault.message}`;
  return [...outcome.contents].map(([n, b]) => `${n} ${Buffer.from(b).toString("base64")}`).join();
}

/** The program as it is: valid, emitted, and the same numbers under every schedule. */
function checkSound(subject: Subject): Finding {
  const program = parse(subject.text)!;
  const valid = validateProgram(program);
  if (!valid.ok)
    return failed(`${subject.name}: ${valid.diagnostics.map(formatDiagnostic).join(" ")}`);
  const emitted = emitPtx(program, architectures.get(subject.target)!);
  if (!emitted.ok)
    return failed(`${subject.name}: ${emitted.diagnostics.map(formatDiagnostic).join(" ")}`);
  const parts = validateProgram(program, { stepsRunWhole: subject.inParts ? 0 : Infinity });
  if (!parts.ok)
    return failed(
      `${subject.name}, in parts: ${parts.diagnostics.map(formatDiagnostic).join(" ")}`,
    );
  const outputs = new Set(schedules.map((seed) => printRuns(program, seed)));
  const [output] = outputs;
  if (outputs.size === 1 && !output!.startsWith("fault")) return passed;
  return failed(`${subject.name}: ${outputs.size} outcomes, one ${output!.slice(0, 120)}`);
}

function checkMutant(
  subject: Subject,
  { what, text }: { readonly what: string; readonly text: string },
): Finding {
  const program = parse(text);
  if (!program) return failed(`${subject.name}: ${what}: is no program`);
  const found = (seed: number): string => printRuns(program, seed);
  if (!validateProgram(program).ok) {
    // The proof by parts, which larger kernels get, may not be easier to please.
    if (!validateProgram(program, { stepsRunWhole: 0 }).ok) return passed;
    return failed(`${subject.name}: accepted in parts, refused whole: ${what}`);
  }
  if (!emitPtx(program, architectures.get(subject.target)!).ok) return passed;
  const output = cleanOutput(subject);
  if (schedules.some((seed) => found(seed) !== output)) return passed;
  return failed(`${subject.name}: survives: ${what}`);
}

function checkPlanted(name: string, fault: PlantedFault): Finding {
  const text = golden(name);
  const where = `${name}: ${fault.what}`;
  if (!text.includes(fault.from)) return failed(`${where}: does not apply`);
  const program = parse(text.replace(fault.from, fault.to));
  if (!program) return failed(`${where}: is no program`);
  const valid = validateProgram(program);
  if (valid.ok || !valid.diagnostics.some((d) => d.code === fault.code)) {
    return failed(`${where}: the validator does not say ${fault.code}`);
  }
  if (!fault.run) return passed;
  const seen: string[] = [];
  for (let seed = 0; seed < 12; seed++) {
    const outcome = runOnce(program, seed);
    const kind = outcome.kind === "fault" ? outcome.fault.kind : "nothing";
    if (outcome.kind === "fault" && fault.run.includes(outcome.fault.kind)) return passed;
    seen.push(kind);
  }
  return failed(`${where}: runs show ${[...new Set(seen)].join(", ")}`);
}
