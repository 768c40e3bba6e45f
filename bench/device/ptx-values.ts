/**
 * Every scalar operator and conversion of the PTX emitter on a device, against the meanings of
 * semantics/scalar-meaning.ts: exact where the operator is (arithmetic, rounding, integers, casts), within
 * the stated units in the last place elsewhere (emit/ptx/math-rows.ts). Random bits, ordinary sizes and
 * special values; vectors of every width; guarded loads. Ends with `N passed, N failed`.
 */
import {
  casesOf,
  valueCount as count,
  valueTypes as kinds,
  programText,
  type ValueCase,
} from "../../campaign/ptx/value-cases.ts";
import { createStream } from "../../src/runtime/cuda/stream.ts";
import { type DType, dtypes, isFloatDType } from "../../src/semantics/dtype.ts";
import { encodeFloat } from "../../src/semantics/float-codec.ts";
import { wrapBig } from "../../src/semantics/integer.ts";
import { roundNumber, type ScalarValue } from "../../src/semantics/scalar-meaning.ts";
import {
  fromRef,
  refTensor,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { loadProgram, openDevice, prepareLaunch, take } from "./ptx-launch.ts";

function draw(dtype: DType, rng: Rng): readonly ScalarValue[] {
  const { kind, bits } = dtypes[dtype];
  const special = [
    0,
    -0,
    1,
    -1,
    2,
    0.5,
    -2.5,
    3.5,
    Infinity,
    -Infinity,
    Number.NaN,
    1e-40,
    6e-8,
    3e38,
    127,
    128,
    255,
    256,
    -128,
    -129,
    65504,
    65520,
    2147483647,
    2147483648,
    -2147483649,
    9.3e18,
    -9.3e18,
    1.9e19,
  ];
  return Array.from({ length: count }, (_, i) => {
    if (kind === "bool") return rng.integer(0, 1);
    if (bits === 64 && kind !== "float") {
      const wide =
        BigInt(rng.integer(-(2 ** 31), 2 ** 31 - 1)) * (i % 2 ? 2n ** 32n : 1n) +
        BigInt(rng.integer(0, 255));
      const value = i % 3 === 0 ? BigInt(rng.integer(-3, 70)) : wide;
      return wrapBig(dtype, value);
    }
    if (kind !== "float") {
      const small = i % 3 === 0 ? rng.integer(-3, 40) : rng.integer(-(2 ** 31), 2 ** 31 - 1);
      return roundNumber(dtype, small);
    }
    if (i % 16 === 0) return roundNumber(dtype, special[(i / 16) % special.length]!);
    const size =
      i % 3 === 0 ? 2 ** rng.integer(-140, 127) : i % 3 === 1 ? 1 : 2 ** rng.integer(-6, 12);
    return roundNumber(dtype, rng.normal() * size);
  });
}

function bytesOf(dtype: DType, values: readonly ScalarValue[]): Uint8Array {
  const data =
    dtype === "i64"
      ? BigInt64Array.from(values as bigint[])
      : dtype === "u64"
        ? BigUint64Array.from(values as bigint[])
        : Float64Array.from(values as number[]);
  return tensorBytes(fromRef(refTensor(dtype, [values.length], data)));
}

const cell = new DataView(new ArrayBuffer(8));

/** Steps between neighbouring floats of the dtype; zeros are one, NaN is next to NaN alone. */
function ulpBetween(dtype: DType, a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) === Number.isNaN(b) ? 0 : Infinity;
  if (a === b) return 0;
  const ordered = (x: number): bigint => {
    if (dtype === "f64") {
      cell.setFloat64(0, x);
      const bits = cell.getBigInt64(0);
      return bits < 0n ? -(bits & 0x7fffffffffffffffn) : bits;
    }
    const bits = BigInt(encodeFloat(dtype, Math.abs(x)));
    return x < 0 ? -bits : bits;
  };
  const steps = ordered(a) - ordered(b);
  return Number(steps < 0n ? -steps : steps);
}

const rng = new Rng(Number(process.argv[2] ?? 1));
const device = openDevice();
const stream = createStream(device);
const inputs = new Map<string, readonly ScalarValue[]>(
  [0, 1].flatMap((i) => kinds.map((d) => [`x${i}.${d}`, draw(d, rng)] as const)),
);
const addresses = new Map<string, bigint>();
for (const dtype of kinds) {
  for (const name of [`x0.${dtype}`, `x1.${dtype}`, `y.${dtype}`]) {
    const bytes = (count * dtypes[dtype].bits) / 8;
    const memory = take(device.allocate(bytes));
    addresses.set(name, memory.address);
    const values = inputs.get(name);
    if (values) device.upload(memory.address, bytesOf(dtype, values));
  }
}
/** Of f32 and bf16; what is below it in f16 is no result of f32 that was flushed. */
const leastNormal = 2 ** -126;
let [passed, failed] = [0, 0];
const worst = new Map<string, number>();
for (const dtype of kinds) {
  const cases = casesOf(dtype);
  const begin = performance.now();
  const program = loadProgram(device, programText(cases));
  const ms = performance.now() - begin;
  for (const [i, c] of cases.entries()) checkCase(c, i, program);
  program.unload();
  console.log(`${dtype}: ${cases.length} kernels, assembled in ${ms.toFixed(0)} ms`);
}
for (const [name, ulp] of worst) console.log(`worst ${name} ${ulp} ulp`);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function checkCase(c: ValueCase, number: number, program: ReturnType<typeof loadProgram>): void {
  const bytes = (count * dtypes[c.output].bits) / 8;
  const at = addresses.get(`y.${c.output}`)!;
  device.fill(at, 0xff, bytes);
  prepareLaunch(device, program, `c${number}`, { addresses, indices: new Map() }).launch(
    stream.handle,
  );
  stream.synchronize();
  const raw = new Uint8Array(bytes);
  device.download(at, raw);
  const found = toRef(tensorFromBytes(c.output, [count], raw)).data;
  const vectors = Math.floor(count / c.lanes);
  let [most, where] = [0, -1];
  for (let i = 0; i < vectors * c.lanes; i++) {
    const guarded = Math.floor(i / c.lanes) > vectors - 8;
    const given = c.inputs.map((d, o) => {
      const one = d === "i64" || d === "u64" ? 1n : 1;
      return guarded && o === 0 ? one : inputs.get(`x${o}.${d}`)![i]!;
    });
    if (c.limit !== undefined && Math.abs(Number(given[0])) > c.limit) continue;
    const wanted = c.meaning(...given);
    const got = found[i]!;
    if (c.flushes && got === 0 && Math.abs(Number(wanted)) < leastNormal) continue;
    const off = isFloatDType(c.output)
      ? ulpBetween(c.output, Number(got), Number(wanted))
      : got === wanted
        ? 0
        : Infinity;
    if (off > most) [most, where] = [off, i];
  }
  if (c.ulp > 0) worst.set(c.name, most);
  if (most <= c.ulp) passed++;
  else {
    failed++;
    const given = c.inputs.map((d, o) => inputs.get(`x${o}.${d}`)![where]);
    const wanted = c.meaning(...(given as ScalarValue[]));
    console.log(
      `FAIL ${c.name}: ${most} ulp at ${where}: (${given.join(", ")}) gives ${found[where]}, not ${wanted}`,
    );
  }
}
