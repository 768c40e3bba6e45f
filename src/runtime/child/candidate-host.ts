/**
 * The child's side of the protocol: keeps loaded programs, fills and poisons their buffers, runs, reads
 * and times them. It judges nothing: the parent compares.
 */
import type { Buffer, Program } from "../../program/program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { type DType, dtypes, isFloatDType, storageBytes } from "../../semantics/dtype.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import { packTensor } from "../../semantics/layout.ts";
import { elementCount } from "../../semantics/shape.ts";
import { tensorBytes, tensorFromBytes } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { sampleInTurns, type TimedSide } from "../measure/sampling.ts";
import { type LoadedProgram, loadProgram } from "./executor.ts";
import { bytesOfFill, FillBlocks } from "./fill.ts";
import type { ChildReply, ChildRequest, TensorFill } from "./protocol.ts";

/** Byte that outputs hold before a run: NaNs in float types, no bool, a rare integer. */
export function poisonOf(dtype: DType): number {
  return isFloatDType(dtype) ? 0xff : 0xa5;
}

interface Loaded {
  readonly program: Program;
  readonly code: LoadedProgram;
  parameters: Readonly<Record<string, number>>;
}

export class CandidateHost {
  readonly #clock: () => number;
  readonly #programs = new Map<number, Loaded>();
  /** Why programs were not loaded: what was asked of them meanwhile is refused with the same words. */
  readonly #refused = new Map<number, ChildReply>();
  readonly #blocks = new FillBlocks();

  /** @param clock nanoseconds */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  async handle(request: ChildRequest): Promise<ChildReply> {
    if (request.kind === "load") {
      const reply = this.#load(request);
      if (reply.kind === "failed") this.#refused.set(request.id, reply);
      else this.#refused.delete(request.id);
      return reply;
    }
    const refused = request.kind === "time" ? undefined : this.#refused.get(request.id);
    if (refused) {
      if (request.kind === "unload") this.#refused.delete(request.id);
      return refused;
    }
    switch (request.kind) {
      case "run":
        return this.#run(request);
      case "read":
        return this.#read(request);
      case "time":
        return this.#time(request);
      case "unload":
        this.#loaded(request.id).code.unload();
        this.#programs.delete(request.id);
        return { kind: "done" };
    }
  }

  #loaded(id: number): Loaded {
    const loaded = this.#programs.get(id);
    invariant(loaded, () => `no program ${id}`);
    return loaded;
  }

  #load({ program: text, id, threads }: Extract<ChildRequest, { kind: "load" }>): ChildReply {
    const program = parseProgram(text);
    if (!program.ok) return failed(program.diagnostics);
    const code = loadProgram(program.value, threads);
    if (!code.ok) return failed(code.diagnostics);
    this.#programs.set(id, { program: program.value, code: code.value, parameters: {} });
    return { kind: "done" };
  }

  #run({ id, parameters, fills }: Extract<ChildRequest, { kind: "run" }>): ChildReply {
    const loaded = this.#loaded(id);
    loaded.parameters = parameters;
    for (const b of loaded.program.buffers) {
      if (b.viewOf !== undefined || (b.kind !== "output" && b.kind !== "scratch")) continue;
      loaded.code.fill(b.name, poisonOf(b.dtype));
    }
    for (const fill of fills) this.#fill(loaded, fill);
    const outcome = loaded.code.run(parameters);
    return outcome.ok ? { kind: "done" } : failed(outcome.diagnostics);
  }

  #fill({ program, code }: Loaded, { tensor, shape, fill }: TensorFill): void {
    const elements = elementCount(shape);
    for (const b of program.buffers) {
      if ((b.source ?? b.name) !== tensor || b.viewOf !== undefined) continue;
      const bytes = bytesOfFill(fill, elements, this.#blocks);
      const stored = b.layout
        ? tensorBytes(packTensor(tensorFromBytes(b.dtype, shape, bytes), b.layout))
        : bytes;
      code.write(b.name, stored);
    }
  }

  #read({ id, buffer: name, offsets }: Extract<ChildRequest, { kind: "read" }>): ChildReply {
    const { program, code, parameters } = this.#loaded(id);
    const b = program.buffers.find((x) => x.name === name);
    invariant(b, () => `no buffer ${name}`);
    const all = code.read(name, storageBytes(b.dtype, countOf(b, parameters)));
    const unwritten = firstPoison(all, b.dtype);
    const width = dtypes[b.dtype].bits / 8;
    const bytes = offsets && width >= 1 ? gather(all, offsets, width) : all.slice();
    return { kind: "bytes", bytes, ...(unwritten !== undefined && { unwritten }) };
  }

  async #time({ ids, protocol }: Extract<ChildRequest, { kind: "time" }>): Promise<ChildReply> {
    const broken: Diagnostic[] = [];
    const sides: TimedSide[] = [];
    for (const { code, parameters } of ids.map((id) => this.#loaded(id))) {
      const own = code.timed?.(parameters);
      if (own && !own.ok) return failed(own.diagnostics);
      const run = (repeats: number): void => {
        for (let i = 0; i < repeats; i++) {
          const outcome = code.run(parameters);
          if (!outcome.ok && broken.length === 0) broken.push(...outcome.diagnostics);
        }
      };
      sides.push(own?.value ?? run);
    }
    const samples = await sampleInTurns(sides, protocol, this.#clock);
    if (broken.length > 0) return failed(broken);
    return { kind: "samples", samples: samples.map((s) => Float64Array.from(s)) };
  }
}

function failed(diagnostics: readonly Diagnostic[]): ChildReply {
  return { kind: "failed", diagnostics };
}

/** What a thrown error is for the parent: memory that ran out is an outcome, all else a bug. */
export function refusalOf(error: unknown): ChildReply {
  if (!(error instanceof RangeError)) throw error;
  return failed([diagnostic("RUN002", `memory ran out: ${error.message}`)]);
}

function countOf(b: Buffer, parameters: Readonly<Record<string, number>>): number {
  const bindings = new Map(Object.entries(parameters));
  return b.shape.reduce((n, e) => n * evaluate(e, bindings), b.lanes);
}

function gather(all: Uint8Array, offsets: Uint32Array, width: number): Uint8Array {
  const bytes = new Uint8Array(offsets.length * width);
  for (let i = 0; i < offsets.length; i++) {
    const at = offsets[i]! * width;
    bytes.set(all.subarray(at, at + width), i * width);
  }
  return bytes;
}

/** The first element of a float tensor that still is poison: its pattern is one that no operation makes. */
function firstPoison(bytes: Uint8Array, dtype: DType): number | undefined {
  if (!isFloatDType(dtype)) return undefined;
  const { buffer, byteOffset, length } = bytes;
  const find = (): number => {
    switch (dtypes[dtype].bits) {
      case 16:
        return new Int16Array(buffer, byteOffset, length / 2).indexOf(-1);
      case 32:
        return new Int32Array(buffer, byteOffset, length / 4).indexOf(-1);
      case 64:
        return new BigInt64Array(buffer, byteOffset, length / 8).indexOf(-1n);
      default:
        return -1;
    }
  };
  const at = find();
  return at < 0 ? undefined : at;
}
