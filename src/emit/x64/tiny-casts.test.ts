/**
 * Floats of at most 8 bits and integers below a byte as machine code: every pattern, every value with the floats
 * around it and around the ties, and random bits, to and from f32, alone and as vectors.
 */
import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { probeNativeFeatures } from "../../runtime/native/features.ts";
import { createNativeInstance } from "../../runtime/native/native-instance.ts";
import { allDTypes, type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { decodeFloat } from "../../semantics/float-codec.ts";
import { castScalar } from "../../semantics/scalar-meaning.ts";
import { fromRef, refTensor, tensorBytes, tensorFromBytes, toRef } from "../../semantics/tensor.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const native = probeNativeFeatures();
const machines = (native.ok ? native.value.targets : []).filter((t) => t.startsWith("x64"));
const types = allDTypes.filter(
  (d) => dtypes[d].bits < 8 || (isFloatDType(d) && dtypes[d].bits === 8),
);
const count = 4096;

/** All values of a type; of integers a little more. */
function valuesOf(dtype: DType): number[] {
  if (!isFloatDType(dtype)) return Array.from({ length: 48 }, (_, i) => i - 24);
  return Array.from({ length: 2 ** dtypes[dtype].bits }, (_, i) => decodeFloat(dtype, i));
}

const bitsOfFloat = (x: number): number => new Int32Array(Float32Array.of(x).buffer)[0]!;
const floatOfBits = (bits: number): number => new Float32Array(Int32Array.of(bits).buffer)[0]!;

function samples(dtype: DType): Float32Array {
  const values = valuesOf(dtype).sort((a, b) => a - b);
  const { max, min } = dtypes[dtype];
  const ties = values.slice(1).map((v, i) => (v + values[i]!) / 2);
  const ends = [max, min, max * 1.01, min * 1.01, max * 1.0625, max * 1.5, max * 2, max + 0.5];
  const centres = [...values, ...ties, ...ends].map(Math.fround);
  const specials = [0, -0, Number.NaN, Infinity, -Infinity, 3e38, -3e38, 1e-30, -1e-30, 1e-40];
  const near = centres.flatMap((v) => [
    v,
    floatOfBits(bitsOfFloat(v) - 1),
    floatOfBits(bitsOfFloat(v) + 1),
  ]);
  const rng = new Rng(7);
  const x = Float32Array.from({ length: count }, () =>
    floatOfBits(Math.floor(rng.uniform() * 2 ** 32) | 0),
  );
  x.set([...specials, ...near].slice(0, count));
  return x;
}

interface Buffers {
  readonly input: readonly [dtype: DType, bytes: Uint8Array];
  readonly outputs: readonly (readonly [name: string, dtype: DType])[];
  readonly elements: number;
  readonly lanes: number;
}

function run(target: string, b: Buffers, body: readonly string[]): readonly Uint8Array[] {
  const text = `program p for "${target}" {
  buffer x : input memory ${b.input[0]} [${b.elements}]
  ${b.outputs.map(([name, dtype]) => `buffer ${name} : output memory ${dtype} [${b.elements}]`).join("\n  ")}
  kernel k region "k" {
    grid threads (t < 1)
    role main copies 1 threads 1 {
      for i < ${b.elements / b.lanes} {
        ${body.join("\n        ")}
      }
    }
  }
  tasks { launch k after previous }
}`;
  const program = parseProgram(text);
  invariant(program.ok && native.ok, () => JSON.stringify(program));
  const options = { system: native.value.system, threads: 1, parallelism: 1, guards: true };
  const made = createNativeInstance(program.value, targets.get(target)!, options);
  invariant(made.ok, () => JSON.stringify(made));
  made.value.bytes("x").set(b.input[1]);
  // What a store has to leave alone, and to overwrite.
  for (const [name] of b.outputs) made.value.bytes(name).fill(0xa5);
  invariant(made.value.runSync({}).ok, () => "the program runs");
  const written = b.outputs.map(([name]) => Uint8Array.from(made.value.bytes(name)));
  made.value.dispose();
  return written;
}

const elementsOf = (dtype: DType, elements: number, bytes: Uint8Array): readonly number[] =>
  Array.from(toRef(tensorFromBytes(dtype, [elements], bytes)).data, Number);

const each = machines.flatMap((target) =>
  types.flatMap((dtype) => [1, 8, 32].map((lanes) => ({ target, dtype, lanes }))),
);
const vector = (dtype: string, lanes: number): string =>
  lanes === 1 ? dtype : `${dtype}x${lanes}`;

describe.skipIf(!native.ok)("numbers of at most 8 bits", () => {
  it.each(each)("$dtype from f32 on $target, $lanes lanes", ({ target, dtype, lanes }) => {
    const x = samples(dtype);
    const buffers: Buffers = {
      ...{ input: ["f32", new Uint8Array(x.buffer)], elements: count, lanes },
      outputs: [
        ["y", dtype],
        ["s", dtype],
      ],
    };
    const load = `load.${vector("f32", lanes)} x[${lanes}*i]`;
    const found = run(target, buffers, [
      `let v = ${load}`,
      `store y[${lanes}*i] = cast.${dtype}(v)`,
      `store s[${lanes}*i] = cast.${dtype}.saturate(v)`,
    ]);
    for (const [i, saturate] of [false, true].entries()) {
      const want = Array.from(x, (v) => Number(castScalar(v, dtype, saturate)));
      const expected = tensorBytes(fromRef(refTensor(dtype, [count], want)));
      const [got, wanted] = [found[i]!, expected].map((b) => elementsOf(dtype, count, b));
      const wrong = wanted!.findIndex((v, at) => !Object.is(v, got![at]));
      expect(wrong < 0 ? "all" : `${x[wrong]}: ${got![wrong]} for ${wanted![wrong]}`).toBe("all");
    }
  });

  it.each(each)("$dtype to f32 and back on $target, $lanes lanes", ({ target, dtype, lanes }) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const elements = (256 * 8) / dtypes[dtype].bits;
    const buffers: Buffers = {
      ...{ input: [dtype, bytes], elements, lanes },
      outputs: [
        ["y", "f32"],
        ["z", dtype],
      ],
    };
    const [y, z] = run(target, buffers, [
      `let v = load.${vector(dtype, lanes)} x[${lanes}*i]`,
      `store y[${lanes}*i] = cast.f32(v)`,
      `store z[${lanes}*i] = v`,
    ]);
    const values = elementsOf(dtype, elements, bytes);
    expect(elementsOf("f32", elements, y!)).toEqual(values);
    expect(elementsOf(dtype, elements, z!)).toEqual(values);
  });

  it.each(machines.flatMap((target) => types.map((dtype) => ({ target, dtype }))))(
    "arithmetic, integers and bool with $dtype on $target",
    ({ target, dtype }) => {
      const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
      const elements = (256 * 8) / dtypes[dtype].bits;
      const values = elementsOf(dtype, elements, bytes);
      for (const lanes of [1, 8]) {
        const buffers: Buffers = {
          ...{ input: [dtype, bytes], elements, lanes },
          outputs: [
            ["y", dtype],
            ["b", "i8"],
            ["d", dtype],
            ["w", dtype],
          ],
        };
        const [y, b, d, w] = run(target, buffers, [
          `let v = load.${vector(dtype, lanes)} x[${lanes}*i]`,
          `store y[${lanes}*i] = select(less(v, ${vector(dtype, lanes)}(1)), add(v, v), v)`,
          `let n = cast.i8.saturate(v)`,
          `store b[${lanes}*i] = n`,
          `store d[${lanes}*i] = cast.${dtype}.saturate(n)`,
          `store w[${lanes}*i] = cast.${dtype}(n)`,
        ]);
        const twice = (v: number) => (v < 1 ? Number(castScalar(2 * v, dtype, false)) : v);
        const whole = values.map((v) => Number(castScalar(v, "i8", true)));
        // Arithmetic flushes the one value of e8m0 that is a subnormal f32.
        const from = dtype === "e8m0" ? 1 : 0;
        const doubled = values.map(twice).slice(from);
        expect(elementsOf(dtype, elements, y!).slice(from)).toEqual(doubled);
        expect(elementsOf("i8", elements, b!)).toEqual(whole.map((v) => v + 0));
        const again = (saturate: boolean) =>
          whole.map((v) => Number(castScalar(v, dtype, saturate)));
        expect(elementsOf(dtype, elements, d!)).toEqual(again(true).map((v) => v + 0));
        expect(elementsOf(dtype, elements, w!)).toEqual(again(false).map((v) => v + 0));
      }
    },
  );
});
