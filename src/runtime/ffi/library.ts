/**
 * The seam to native libraries: a library by its file name, functions by C prototypes. Everything that
 * calls native code goes through here, so that another bridge than koffi can take its place. Arguments of
 * type `void *` take typed arrays, whose address holds for the call only: what a library keeps must be
 * addressed with `addressOf` and kept referenced.
 */
import { createRequire } from "node:module";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";

export type NativeFunction = (...args: readonly unknown[]) => unknown;

export interface NativeLibrary {
  /** `bind("cuInit", "int", "uint flags")`; undefined when the library has no such symbol. */
  bind(name: string, result: string, parameters: string): NativeFunction | undefined;
}

type Koffi = typeof import("koffi").default;

let loaded: Koffi | undefined;

function koffi(): Koffi {
  loaded ??= createRequire(import.meta.url)("koffi") as Koffi;
  return loaded;
}

/** The first of the names that the system's loader finds. */
export function openLibrary(names: readonly string[]): Result<NativeLibrary> {
  const notes: string[] = [];
  let bridge: Koffi;
  try {
    bridge = koffi();
  } catch (error) {
    // A missing package, or no binary for this system: not to be read as a missing library.
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    return fail(
      diagnostic("FFI001", "native libraries cannot be called", {
        notes: [`koffi cannot be loaded: ${why}`],
        help: "npm install koffi",
      }),
    );
  }
  for (const name of names) {
    try {
      const library = bridge.load(name);
      return ok({
        bind(symbol, result, parameters) {
          try {
            return library.func(`${result} ${symbol}(${parameters})`) as NativeFunction;
          } catch (error) {
            if (error instanceof Error && /cannot find/i.test(error.message)) return undefined;
            throw error;
          }
        },
      });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      notes.push(`${name}: ${error.message.split("\n")[0]}`);
    }
  }
  return fail(
    diagnostic("FFI001", `none of ${names.join(", ")} can be loaded`, {
      notes,
      help: "install the library or driver that this target needs; wavetile doctor lists them",
    }),
  );
}

/** Where the bytes lie; the caller keeps the array referenced for as long as anything holds the address. */
export function addressOf(bytes: ArrayBufferView): bigint {
  return BigInt(koffi().address(bytes));
}

/** Native memory itself, not a copy; not to be used once it is freed. */
export function viewAddress(address: bigint, bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(koffi().view(address, bytes));
}

/** A copy of native memory. */
export function copyFromAddress(address: bigint, bytes: number): Uint8Array {
  return new Uint8Array(koffi().view(address, bytes)).slice();
}
