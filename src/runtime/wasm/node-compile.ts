/**
 * Compiles WebAssembly in Node.js once and well. V8 begins with quick code and replaces what runs often, which needs a
 * function that is called often: a kernel is called once a run and turns in its own loops, so a first run was quick
 * code from end to end (ResNet-50: eight times as long as the runs after it, for 0.1 s of compiling well). There is
 * no way to ask for it but V8's flags, which belong to the process: they are set while one module is compiled and are as
 * before when that ends. Other engines choose as they do.
 */
import { setFlagsFromString } from "node:v8";

/** Modules beyond it have functions that may never run: about 1 us is spent on each byte. */
const mostBytes = 4 * 1024 * 1024;

/** Flags of V8 by which whoever started the process has chosen already. */
const chosenBy = /liftoff|wasm[-_](tier|dynamic|lazy|jitless)|turbofan|jitless|max[-_]wasm/;

const well = ["--no-liftoff", "--no-wasm-lazy-compilation"] as const;
const asBefore = ["--liftoff", "--wasm-lazy-compilation"] as const;

export interface EngineOfProcess {
  readonly versions: Readonly<Record<string, string | undefined>>;
  /** What it was started with. */
  readonly options: readonly string[];
  readonly setFlag: (flag: string) => void;
}

const here = (): EngineOfProcess => ({
  versions: process.versions,
  options: [...process.execArgv, process.env.NODE_OPTIONS ?? ""],
  setFlag: setFlagsFromString,
});

/** The module of the bytes; throws what `WebAssembly.Module` throws. */
export function compileWhole(bytes: Uint8Array<ArrayBuffer>, engine = here()): WebAssembly.Module {
  if (bytes.byteLength > mostBytes || !isOurs(engine)) return new WebAssembly.Module(bytes);
  for (const flag of well) engine.setFlag(flag);
  try {
    return new WebAssembly.Module(bytes);
  } finally {
    for (const flag of asBefore) engine.setFlag(flag);
  }
}

/** Whether flags can be set and nobody else has: programs that embed Node.js may have fixed them. */
function isOurs({ versions, options }: EngineOfProcess): boolean {
  const isPlainNode = versions.v8 && !versions.electron && !versions.bun && !versions.deno;
  return Boolean(isPlainNode) && !options.some((option) => chosenBy.test(option));
}
