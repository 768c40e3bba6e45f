/**
 * Loads, stores and checks of the WebAssembly emitter against the interpreter, over what programs may
 * ask for: every dtype in every number of lanes up to 17 (so that a vector ends in pieces of 8, 4, 2
 * and 1 bytes), all bit patterns of the narrow types, at every distance from a buffer's start; register
 * buffers of several chunks; checked indices on both sides of both ends.
 */
import { describe, expect, it } from "vitest";
import { type ProgramRun, runProgram } from "../../src/interp/program.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { createWasmInstance } from "../../src/runtime/wasm/wasm-instance.ts";
import { type DType, dtypes, storageBytes } from "../../src/semantics/dtype.ts";
import { Rng } from "../../src/support/rng.ts";
import { runInWasm } from "./run-in-wasm.ts";

function parse(text: string): Program {
  const parsed = parseProgram(text);
  if (!parsed.ok) throw new Error(parsed.diagnostics.map((d) => `${d.at} ${d.message}`).join("\n"));
  return parsed.value;
}

/** A kernel of one thread over the buffers. */
function programText(buffers: readonly string[], body: string, local: readonly string[] = []) {
  return `program p for "wasm" {
    ${buffers.map((b) => `buffer ${b}`).join("\n")}
    kernel k region "k" {
      grid threads (t < 1)
      ${local.map((b) => `buffer ${b}`).join("\n")}
      role main copies 1 threads 1 { ${body} }
    }
    tasks { launch k after previous }
  }`;
}

/** Both must give the same bytes. */
function check(text: string, contents: ReadonlyMap<string, Uint8Array>, what: string): void {
  const program = parse(text);
  const run: ProgramRun = { parameters: {}, contents, threads: 1, seed: 1 };
  const truth = runProgram(program, run);
  if (truth.kind === "fault") throw new Error(`${what}: ${JSON.stringify(truth.fault)}`);
  for (const [name, bytes] of runInWasm(program, run)) {
    expect([...bytes], `${what}, buffer ${name}`).toEqual([...truth.contents.get(name)!]);
  }
}

/** Every bit pattern of types of one byte, random ones of the others; no NaN, whose bits are free. */
function patterns(rng: Rng, dtype: DType, count: number): Uint8Array {
  const bytes = new Uint8Array(storageBytes(dtype, count));
  const each = bytes.length / count;
  const float = dtypes[dtype].format !== undefined;
  for (let i = 0; i < count; i++) {
    for (let b = 0; b < each; b++) bytes[each * i + b] = each === 1 ? 37 * i : rng.integer(0, 255);
    // The exponent's top bits set make infinities and NaN; one of them is cleared.
    if (float) bytes[each * i + each - 1]! &= 0xbf;
    if (dtype === "bool") bytes[i] = rng.integer(0, 1);
  }
  return bytes;
}

const narrow: readonly DType[] = ["i8", "u8", "bool", "i16", "u16", "f16", "bf16"];
const wide: readonly DType[] = ["i32", "u32", "f32", "i64", "u64", "f64"];
const extent = 64;

describe.each([...narrow, ...wide])("%s in memory", (dtype) => {
  const isNarrow = narrow.includes(dtype);
  const lanesTried = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17];

  it("is moved and widened in every number of lanes, at every distance", () => {
    const rng = new Rng(7);
    const into = isNarrow ? "i32" : dtype;
    const buffers = [`x : input memory ${dtype} [${extent}]`];
    const body: string[] = [];
    for (const lanes of lanesTried) {
      const type = lanes === 1 ? dtype : `${dtype}x${lanes}`;
      const from = rng.integer(0, extent - 4 * lanes < 0 ? 0 : 9);
      const trips = Math.floor((extent - from) / lanes);
      const load = `load.${type} x[${lanes}*i${lanes} + ${from}]`;
      buffers.push(`y${lanes} : output memory ${dtype} [${lanes * trips}]`);
      buffers.push(`z${lanes} : output memory ${into} [${lanes * trips}]`);
      const widened = into === dtype ? load : `cast.${into}(${load})`;
      body.push(`for i${lanes} < ${trips} {
        store y${lanes}[${lanes}*i${lanes}] = ${load}
        store z${lanes}[${lanes}*i${lanes}] = ${widened}
      }`);
    }
    const contents = new Map([["x", patterns(rng, dtype, extent)]]);
    check(programText(buffers, body.join("\n")), contents, dtype);
  });

  it("leaves the neighbours of what it stores alone", () => {
    const rng = new Rng(3);
    const buffers = [`x : input memory ${dtype} [${extent}]`];
    const body: string[] = [];
    for (const lanes of lanesTried) {
      const type = lanes === 1 ? dtype : `${dtype}x${lanes}`;
      // Everything is written one by one, then one vector over the middle, from elsewhere.
      buffers.push(`y${lanes} : output memory ${dtype} [${lanes + 18}]`);
      body.push(`for i${lanes} < ${lanes + 18} { store y${lanes}[i${lanes}] = load.${dtype} x[i${lanes}] }
        store y${lanes}[${rng.integer(0, 18)}] = load.${type} x[${rng.integer(18, extent - lanes)}]`);
    }
    const contents = new Map([["x", patterns(rng, dtype, extent)]]);
    check(programText(buffers, body.join("\n")), contents, dtype);
  });
});

describe("register buffers", () => {
  const types = [
    "f32x8",
    "f32x16",
    "f32x7",
    "i8x32",
    "f64x4",
    "i64x3",
    "f16x8",
    "boolx16",
    "i32x12",
  ];

  it.each(types)("of %s keep the order of their chunks when elements are exchanged", (type) => {
    const [dtype, lanes] = type.split("x") as [DType, string];
    const n = Number(lanes);
    const text = programText(
      [`x : input memory ${dtype} [${3 * n}]`, `y : output memory ${dtype} [${3 * n}]`],
      `${[0, 1, 2].map((e) => `store r[${e}] = load.${type} x[${e * n}]`).join("\n")}
       for i < 2 {
         store r[0] = select(less(load.${type} r[0], load.${type} r[1]), load.${type} r[1], load.${type} r[0])
         let old = load.${type} r[1]
         store r[1] = load.${type} r[2]
         store r[2] = old
       }
       ${[0, 1, 2].map((e) => `store y[${e * n}] = load.${type} r[${e}]`).join("\n")}`,
      [`r : scratch register ${type} [3]`],
    );
    check(text, new Map([["x", patterns(new Rng(5), dtype, 3 * n)]]), type);
  });
});

describe("checked indices", () => {
  /** The value that y[0] gets, or the diagnostic's code. */
  function indexed(dtype: DType, value: number, wraps: boolean): string {
    const literal =
      dtype === "u8" || dtype === "i8" ? `cast.${dtype}(i32(${value}))` : `${dtype}(${value})`;
    const text = programText(
      ["x : input memory i32 [5]", "y : output memory i32 [1]"],
      `index q < 5 checked${wraps ? " wraps" : ""} = ${literal}
       store y[0] = load.i32 x[q]`,
    );
    const made = createWasmInstance(parse(text), { relaxedFma: false });
    if (!made.ok) throw new Error(made.diagnostics[0]!.message);
    const instance = made.value;
    instance.bytes("x").set(new Uint8Array(Int32Array.of(10, 11, 12, 13, 14).buffer));
    const outcome = instance.runSync({});
    return outcome.ok ? String(instance.bytes("y")[0]) : outcome.diagnostics[0]!.code;
  }

  it.each(["i32", "i64", "i8"] as const)(
    "of %s are stopped at both ends, wrapped where said",
    (dtype) => {
      for (let value = -12; value <= 12; value++) {
        const plain = value >= 0 && value < 5 ? String(10 + value) : "RUN006";
        const wrapped = value >= -5 && value < 0 ? String(15 + value) : plain;
        expect(indexed(dtype, value, false), `${value}`).toBe(plain);
        expect(indexed(dtype, value, true), `${value} wrapped`).toBe(wrapped);
      }
    },
  );
});
