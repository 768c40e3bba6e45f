/**
 * What a command is: a name, a schema of its arguments, and an action that is loaded when it is called.
 * The command line, its help and JSON Schemas are all made from this; nothing is described twice.
 */
import { z } from "zod";
import type { Result } from "../support/diagnostic.ts";
import { allowances } from "../target/allowing.ts";

/** What an action may use of the world around it. */
export interface CommandContext {
  /** Milliseconds of a steady clock. */
  readonly now: () => number;
  /** A line about what is being done, shown where someone watches. */
  readonly progress: (text: string) => void;
  /**
   * A signal that an interrupt raises. From the call on an interrupt no longer ends the process: only
   * commands that look at the signal between short steps may ask for it.
   */
  readonly interrupted: () => AbortSignal;
}

/** A result: JSON data for programs, and the same for people. */
export interface CommandResult {
  readonly data: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The target that was used, for the envelope. */
  readonly target?: string;
  /** Set when the command worked and its finding is not the hoped-for one. */
  readonly failed?: readonly import("../support/diagnostic.ts").Diagnostic[];
}

export type Action<A> = (args: A, context: CommandContext) => Promise<Result<CommandResult>>;

export interface Command<S extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly summary: string;
  readonly args: S;
  readonly load: () => Promise<Action<z.infer<S>>>;
}

/** How an argument is spelled on the command line; kept in the schema's metadata. */
export interface ArgumentInfo {
  readonly description: string;
  /** Name of the value in the help: FILE. Absent for switches. */
  readonly value?: string;
  readonly positional?: boolean;
  readonly short?: string;
}

export function argument<S extends z.ZodType>(schema: S, info: ArgumentInfo): S {
  return schema.meta({ ...info });
}

export function argumentInfo(schema: z.ZodType): ArgumentInfo {
  return schema.meta() as unknown as ArgumentInfo;
}

/** Ties the action's argument type to the schema. */
export function command<S extends z.ZodObject>(spec: Command<S>): Command {
  return spec as unknown as Command;
}

/** Arguments that several commands share. */
export const shared = {
  model: argument(z.string(), {
    description: "an artifact (.wt) or an ONNX model",
    value: "MODEL",
    positional: true,
  }),
  target: argument(z.string().default("auto"), {
    description:
      "a name of `wavetile targets`, cpu, cuda, or auto: the best program of an artifact that runs here; a model is compiled to WebAssembly",
    value: "NAME",
  }),
  shape: argument(z.array(z.string()).default([]), {
    description: "extent of a symbolic dimension: NAME=VALUE or NAME=LOW..HIGH (repeatable)",
    value: "NAME=VALUE",
  }),
  input: argument(z.array(z.string()).default([]), {
    description: "an input from a .npy file (repeatable)",
    value: "NAME=FILE.npy",
  }),
  value: argument(z.array(z.string()).default([]), {
    description:
      "an input whose value is fixed when the model is compiled: a file, or numbers (repeatable)",
    value: "NAME=FILE.npy|NUMBER,…",
  }),
  state: argument(z.array(z.string()).default([]), {
    description: "an input that takes over an output of the run before (repeatable)",
    value: "INPUT=OUTPUT",
  }),
  rewrite: argument(z.enum(["on", "off", "approximate"]).default("off"), {
    description:
      "look for a cheaper equal graph by equality saturation before compiling; approximate: also by rules with an error bound, which verify then grants",
    value: "on|off|approximate",
  }),
  allow: argument(z.array(z.enum(allowances)).default([]), {
    description:
      "what may change results within a bound that verify then grants: tf32, products of f32 on the matrix units of GPUs (repeatable)",
    value: "tf32",
  }),
  rules: argument(z.string().optional(), {
    description: "rewrite rules of your own, each proved on random tensors before it is used",
    value: "FILE.json",
  }),
  threads: argument(z.coerce.number().int().min(1).max(256).optional(), {
    description: "compute threads; default: what `wavetile detect` advises",
    value: "N",
  }),
  calibration: argument(z.string().default("auto"), {
    description:
      "prices of `wavetile calibrate`: auto (this machine's, if it has any), off, or a file",
    value: "auto|off|FILE",
  }),
  seed: argument(z.coerce.number().int().default(0), {
    description: "seed of everything random",
    value: "N",
  }),
} as const;
