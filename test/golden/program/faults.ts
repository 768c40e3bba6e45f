/**
 * Faults planted into the golden programs: one change of the text each, with the code by which the
 * validator rejects it and, where a run shows it, the fault that the interpreter finds.
 */
import type { FaultKind } from "../../../src/interp/program-fault.ts";
import type { DiagnosticCode } from "../../../src/support/diagnostic-codes.ts";

export interface PlantedFault {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly code: DiagnosticCode;
  /** Any of these, with some seed; absent where no run need go wrong. */
  readonly run?: readonly FaultKind[];
}

const acc = "store acc[i] = f32(0)";
const releaseLast = "signal empty[mod(kb + 1, 2)] by 1 in instance";
const waitFull = "wait full[mod(kb, 2)] for floorDiv(kb, 2)\n";

export const pipelinedFaults: readonly PlantedFault[] = [
  {
    what: "missing wait for a full stage",
    from: waitFull,
    to: "\n",
    code: "PRG031",
    run: ["race", "uninitialised"],
  },
  {
    what: "missing wait for an empty stage",
    from: "wait empty[mod(kb, 2)] for floorDiv(kb, 2) + 1\n",
    to: "\n",
    code: "PRG041",
    run: ["race", "deadlock"],
  },
  {
    what: "wrong parity of full",
    from: waitFull,
    to: "wait full[mod(kb, 2)] for floorDiv(kb, 2) + 1\n",
    code: "PRG040",
    run: ["race", "uninitialised", "deadlock"],
  },
  {
    what: "wrong parity of empty",
    from: "wait empty[mod(kb, 2)] for floorDiv(kb, 2) + 1",
    to: "wait empty[mod(kb, 2)] for floorDiv(kb, 2)",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "wait for the stage after",
    from: waitFull,
    to: "wait full[mod(kb + 1, 2)] for floorDiv(kb, 2)\n",
    code: "PRG031",
    run: ["race", "uninitialised", "deadlock"],
  },
  {
    what: "release of a stage in use",
    from: releaseLast,
    to: "signal empty[mod(kb, 2)] by 1 in instance",
    code: "PRG040",
    run: ["race", "deadlock"],
  },
  {
    what: "release before the multiplication is over",
    from: "await mma pending 1",
    to: "await mma pending 2",
    code: "PRG031",
    run: ["race"],
  },
  {
    what: "accumulators read too early",
    from: "await mma pending 0",
    to: "await mma pending 1",
    code: "PRG031",
    run: ["race"],
  },
  {
    what: "missing proxy fence",
    from: "fence shared\n",
    to: "\n",
    code: "PRG032",
    run: ["missingFence"],
  },
  {
    what: "fence of the other scope",
    from: "fence shared\n",
    to: "fence memory\n",
    code: "PRG032",
    run: ["missingFence"],
  },
  { what: "dropped barrier", from: "barrier copy\n", to: "\n", code: "PRG021", run: ["race"] },
  {
    what: "too few arrivals announced",
    from: "empty : shared phase [2] arrivals 128",
    to: "empty : shared phase [2] arrivals 64",
    code: "PRG041",
    run: ["race", "deadlock"],
  },
  {
    what: "too many arrivals announced",
    from: "empty : shared phase [2] arrivals 128",
    to: "empty : shared phase [2] arrivals 129",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "too many bytes announced",
    from: "bytes 9216",
    to: "bytes 9232",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "too few bytes announced",
    from: "bytes 9216",
    to: "bytes 8192",
    code: "PRG041",
    run: ["deadlock", "race", "uninitialised"],
  },
  {
    what: "never released",
    from: releaseLast,
    to: "fence shared",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "accumulators not set",
    from: acc,
    to: "fence shared",
    code: "PRG021",
    run: ["uninitialised"],
  },
  {
    what: "two blocks write the same columns",
    from: "y[0, 8*b] box",
    to: "y[0, 0] box",
    code: "PRG031",
    run: ["race"],
  },
  {
    what: "half of the rows stored",
    from: "y[0, 8*b] box [64, 8], staging[0, 0] box [64, 8]",
    to: "y[0, 8*b] box [32, 8], staging[0, 0] box [32, 8]",
    code: "PRG020",
    run: ["unwrittenOutput"],
  },
  {
    what: "copy past the end of a stage",
    from: "sw[mod(kb, 2), 0, 0] box [8, 64], w",
    to: "sw[mod(kb, 2), 1, 0] box [8, 64], w",
    code: "PRG010",
    run: ["outOfBounds"],
  },
  {
    what: "one stage too few",
    from: "sx : scratch shared bf16 [2, 64, 64]",
    to: "sx : scratch shared bf16 [1, 64, 64]",
    code: "PRG010",
    run: ["outOfBounds"],
  },
  {
    what: "wrong swizzle",
    from: "sw : scratch shared bf16 [2, 8, 64] swizzle 128",
    to: "sw : scratch shared bf16 [2, 8, 64] swizzle 64",
    code: "PRG003",
  },
  {
    what: "a copy that nobody awaits",
    from: "threads 1 {\n      for kb < 5",
    to: "threads 1 {\n      for kb < 6",
    code: "PRG031",
  },
  { what: "store left under way", from: "await out pending 0", to: "fence shared", code: "PRG031" },
  {
    what: "bias past its end",
    from: "bias[8*b + 2*mod",
    to: "bias[8*b + 4*mod",
    code: "PRG010",
    run: ["outOfBounds"],
  },
  {
    what: "input overwritten",
    from: "bulk.store.2d(y[0, 8*b]",
    to: "bulk.store.2d(x[0, 8*b]",
    code: "PRG003",
  },
];

export const megakernelFaults: readonly PlantedFault[] = [
  {
    what: "missing wait",
    from: "wait done[1] for 2*layer + 2 ",
    to: "",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "threshold of half the blocks",
    from: "wait done[0] for 2*layer + 2",
    to: "wait done[0] for 2*layer + 1",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "threshold of the layer before",
    from: "wait done[0] for 2*layer + 2",
    to: "wait done[0] for 2*layer",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "threshold too high",
    from: "wait done[0] for 2*layer + 2",
    to: "wait done[0] for 2*layer + 3",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "cyclic waits",
    from: "wait done[2] for 2*layer ",
    to: "wait done[2] for 2*layer + 2 ",
    code: "PRG040",
    run: ["deadlock"],
  },
  {
    what: "first wait dropped",
    from: "wait done[3] for 2 ",
    to: "",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "not after the layers",
    from: "launch sample after previous\n    if",
    to: "launch sample after counters\n    if",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "two writers of one element",
    from: "store u[4*b + t]",
    to: "store u[t]",
    code: "PRG030",
    run: ["race"],
  },
  {
    what: "output unwritten on one way",
    from: "launch finish after previous\n      stop",
    to: "stop",
    code: "PRG020",
  },
  {
    what: "output partly written",
    from: "store y[4*b + t]",
    to: "store y[4*b + floorDiv(t, 2)]",
    code: "PRG020",
    run: ["race", "unwrittenOutput"],
  },
  {
    what: "overlapping placement",
    from: "at scratch + (64)",
    to: "at scratch + (40)",
    code: "PRG050",
    run: ["uninitialised", "race"],
  },
  {
    what: "stale buffer",
    from: "u[4*b + t] = max(load.f32 q[4*b + t]",
    to: "u[4*b + t] = max(load.f32 y[4*b + t]",
    code: "PRG021",
    run: ["uninitialised"],
  },
  {
    what: "one trip too many for the table",
    from: "repeat layer < 3",
    to: "repeat layer < 4",
    code: "PRG010",
    run: ["outOfBounds"],
  },
  {
    what: "tail out of bounds",
    from: "x[4*b + t]",
    to: "x[4*b + t + 1]",
    code: "PRG010",
    run: ["outOfBounds"],
  },
  {
    what: "flag tested before it is set",
    from: "launch sample after previous\n    if",
    to: "if",
    code: "PRG021",
    run: ["uninitialised"],
  },
];

const early = "prerequisites end\n      store";

/** Of launches that start while earlier ones run (dependents.txt). */
export const dependentFaults: readonly PlantedFault[] = [
  {
    what: "no wait for earlier launches",
    from: `${early} y`,
    to: "store y",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "wait behind a load of what an earlier launch makes",
    from: `${early} y[32*b + t] = add(v, load.f32 h[63 - 32*b - t])`,
    to: "let u = load.f32 h[63 - 32*b - t]\n      prerequisites end\n      store y[32*b + t] = add(v, u)",
    code: "PRG030",
    run: ["race", "uninitialised"],
  },
  {
    what: "a buffer used again before its readers have ended",
    from: `${early} h[32*b + t] = u`,
    to: "store h[32*b + t] = u\n      prerequisites end",
    code: "PRG030",
    run: ["race"],
  },
  {
    what: "only one thread waits for earlier launches",
    from: `${early} h[32*b + t] = u`,
    to: "if t == 0 {\n        prerequisites end\n      }\n      store h[32*b + t] = u",
    code: "PRG030",
    run: ["race"],
  },
  {
    what: "a first launch that starts after another",
    from: "launch first after previous",
    to: "launch first after started",
    code: "PRG030",
  },
  {
    what: "a launch whose end says nothing of earlier ones",
    from: `${early} z[32*b + t] = sub(load.f32 y[32*b + t], load.f32 h[32*b + t])`,
    to: "store z[32*b + t] = load.f32 x[32*b + t]",
    code: "PRG030",
    run: ["race"],
  },
];
