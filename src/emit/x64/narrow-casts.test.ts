import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { probeNativeFeatures } from "../../runtime/native/features.ts";
import { createNativeInstance } from "../../runtime/native/native-instance.ts";
import type { DType } from "../../semantics/dtype.ts";
import { castScalar, numberMeaningOf } from "../../semantics/scalar-meaning.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";

const native = probeNativeFeatures();
const count = 1024;

const arrays = { f32: Float32Array, i32: Int32Array, u32: Uint32Array } as const;
type Wide = keyof typeof arrays;
const narrowArrays = { i8: Int8Array, u8: Uint8Array, i16: Int16Array } as const;
type Narrow = keyof typeof narrowArrays;

/** Around the ends of the bytes' ranges and of the 32-bit ones, and whatever else bits spell. */
function samples(from: Wide): Float32Array | Int32Array | Uint32Array {
  const bits = Int32Array.from({ length: count }, (_, i) => Math.imul(i, 0x9e3779b1));
  const x = new arrays[from](bits.buffer);
  for (let i = 0; i < count; i += 2) x[i] = i - count / 2;
  if (from === "f32") {
    // Halves, which are rounded to even.
    for (let i = 1; i < count; i += 8) x[i] = (i - count / 2) / 2;
    x.set([0, -0, Infinity, -Infinity, Number.NaN, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 40, 255.5]);
  } else x.set([0, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 127, 128, -128, -129, 255, 256]);
  return x;
}

interface Case {
  readonly target: string;
  readonly from: Wide;
  readonly to: Narrow;
  readonly lanes: number;
  readonly saturate: boolean;
}

interface Loop {
  readonly target: string;
  readonly from: Wide;
  readonly outputs: readonly (readonly [name: string, dtype: DType])[];
  readonly trips: number;
  readonly body: readonly string[];
}

/** The buffers that a loop over `i` writes from the samples in x. */
function run({ target, from, outputs, trips, body }: Loop): readonly ArrayBuffer[] {
  invariant(native.ok, () => "machine code runs here");
  const text = `program p for "${target}" {
  buffer x : input memory ${from} [${count}]
  ${outputs.map(([name, dtype]) => `buffer ${name} : output memory ${dtype} [${count}]`).join("\n  ")}
  kernel k region "k" {
    grid threads (t < 1)
    role main copies 1 threads 1 {
      for i < ${trips} {
        ${body.join("\n        ")}
      }
    }
  }
  tasks { launch k after previous }
}`;
  const program = parseProgram(text);
  invariant(program.ok, () => JSON.stringify(program));
  const options = { system: native.value.system, threads: 1, parallelism: 1, guards: true };
  const made = createNativeInstance(program.value, targets.get(target)!, options);
  invariant(made.ok, () => JSON.stringify(made));
  made.value.bytes("x").set(new Uint8Array(samples(from).buffer));
  invariant(made.value.runSync({}).ok, () => "the program runs");
  const written = outputs.map(([name]) => Uint8Array.from(made.value.bytes(name)).buffer);
  made.value.dispose();
  return written;
}

/** The elements converted and stored, and converted back to where they came from. */
function convert(c: Case): readonly [ArrayLike<number>, ArrayLike<number>, ArrayLike<number>] {
  const cast = `cast.${c.to}${c.saturate ? ".saturate" : ""}`;
  const [y, z] = run({
    ...c,
    outputs: [
      ["y", c.to],
      ["z", c.from],
    ],
    trips: count / c.lanes,
    body: [
      `let n = ${cast}(load.${c.from}x${c.lanes} x[${c.lanes}*i])`,
      `store y[${c.lanes}*i] = n`,
      `store z[${c.lanes}*i] = cast.${c.from}(load.${c.to}x${c.lanes} y[${c.lanes}*i])`,
    ],
  });
  return [samples(c.from), new narrowArrays[c.to](y!), new arrays[c.from](z!)];
}

const cases = (native.ok ? native.value.targets : [])
  .filter((target) => target.startsWith("x64"))
  .flatMap((target) =>
    (["f32", "i32", "u32"] as const).flatMap((from) =>
      (["i8", "u8", "i16"] as const).flatMap((to) =>
        [4, 8, 16, 32].flatMap((lanes) =>
          [true, false].map((saturate): Case => ({ target, from, to, lanes, saturate })),
        ),
      ),
    ),
  )
  // What a float beyond the range becomes is not said without saturation.
  .filter((c) => c.saturate || c.from !== "f32");

describe.skipIf(!native.ok)("conversions to short numbers and back", () => {
  it.each(cases)("$target $from to $to, $lanes lanes, saturating: $saturate", (c) => {
    const [x, y, z] = convert(c);
    const want = Array.from(x, (v) => Number(castScalar(v, c.to, c.saturate)) + 0);
    expect(Array.from(y)).toEqual(want);
    expect(Array.from(z)).toEqual(want.map((v) => Number(castScalar(v, c.from, false)) + 0));
  });
});

const machines = (native.ok ? native.value.targets : []).filter((t) => t.startsWith("x64"));

/** A float as it is, rounded, and rounded and moved by a whole number, as a quantised value is. */
const floats = { v: (v: number) => v, r: rounded, m: (v: number) => Math.fround(rounded(v) + 128) };
type FloatName = keyof typeof floats;
const floatNames = Object.keys(floats) as FloatName[];

function rounded(v: number): number {
  return Number(numberMeaningOf("round", "f32")(v, 0, 0));
}

function lines(lanes: number): readonly string[] {
  return [
    `let v = load.f32x${lanes} x[${lanes}*i]`,
    `let r = round(v)`,
    `let m = add(r, f32x${lanes}(128))`,
  ];
}

function bytesOf(name: FloatName, to: DType): readonly number[] {
  return Array.from(samples("f32"), (v) => Number(castScalar(floats[name](v), to, true)) + 0);
}

describe.skipIf(!native.ok)("floats that are bytes in between", () => {
  const again = [8, 16].flatMap((lanes) =>
    (["f32", "i32", "i16"] as const).flatMap((to) =>
      floatNames.flatMap((name) => machines.map((target) => ({ target, lanes, to, name }))),
    ),
  );
  it.each(again)("as $to on $target, $lanes lanes of $name", ({ target, lanes, to, name }) => {
    const [z] = run({
      target,
      from: "f32",
      outputs: [["z", to]],
      trips: count / lanes,
      body: [
        ...lines(lanes),
        `let n = cast.u8.saturate(${name})`,
        `store z[${lanes}*i] = cast.${to}(n)`,
      ],
    });
    const found = to === "i16" ? new Int16Array(z!) : new arrays[to](z!);
    expect(Array.from(found, (v) => v + 0)).toEqual(bytesOf(name, "u8"));
  });
});

describe.skipIf(!native.ok)("rounded floats become bytes", () => {
  const cases = [4, 8, 16].flatMap((lanes) =>
    (["u8", "i8"] as const).flatMap((to) =>
      floatNames.flatMap((name) => machines.map((target) => ({ target, lanes, to, name }))),
    ),
  );
  it.each(cases)("$to on $target, $lanes lanes of $name", ({ target, lanes, to, name }) => {
    const [z] = run({
      target,
      from: "f32",
      outputs: [["z", to]],
      trips: count / lanes,
      body: [...lines(lanes), `store z[${lanes}*i] = cast.${to}.saturate(${name})`],
    });
    expect(Array.from(new narrowArrays[to](z!), (v) => v + 0)).toEqual(bytesOf(name, to));
  });
});
