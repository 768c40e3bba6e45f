import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { probeNativeFeatures } from "../../runtime/native/features.ts";
import { createNativeInstance } from "../../runtime/native/native-instance.ts";
import { erf } from "../../semantics/erf.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import { mathRows } from "./math-rows.ts";

const native = probeNativeFeatures();
const count = 4096;

const references: Readonly<Record<string, (x: number) => number>> = {
  exp: Math.exp,
  log: Math.log,
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  erf,
};

/** All magnitudes of both signs, special values first; subnormal numbers count as zero here. */
function samples(): Float32Array {
  const x = new Float32Array(count);
  const bits = new Int32Array(x.buffer);
  for (let i = 0; i < count; i++) bits[i] = Math.imul(i, 0x9e3779b1);
  for (let i = 0; i < count; i += 2) x[i] = (i - count / 2) / 20;
  x.set([0, -0, 1, -1, Infinity, -Infinity, Number.NaN, 88.7, -87, 100, -110, 1e30, -1e30]);
  // Both sides of where e^x leaves the normal numbers.
  x.set([88.72283172607422, 88.72283935546875, -87.33654, -87.33655, -87.6, -87.7, -88], 16);
  const normal = x.map((v) => (Math.abs(v) < 2 ** -126 ? 0 : v));
  // Not numbers, with low bits set.
  new Int32Array(normal.buffer).set([0x7fc00001, 0x7fc001ff, 0x7fffffff, -0x003ffe01], 32);
  return normal;
}

function evaluate(
  op: string,
  target: string,
  lanes: number,
): readonly [Float32Array, Float32Array] {
  invariant(native.ok, () => "machine code runs here");
  const text = `program p for "${target}" {
  buffer x : input memory f32 [${count}]
  buffer y : output memory f32 [${count}]
  kernel k region "k" {
    grid threads (t < 1)
    role main copies 1 threads 1 {
      for i < ${count / lanes} {
        store y[${lanes}*i] = ${op}(load.${lanes === 1 ? "f32" : `f32x${lanes}`} x[${lanes}*i])
      }
    }
  }
  tasks { launch k after previous }
}`;
  const program = parseProgram(text);
  invariant(program.ok, () => JSON.stringify(program));
  const options = { system: native.value.system, threads: 1, parallelism: 1 };
  const made = createNativeInstance(program.value, targets.get(target)!, options);
  invariant(made.ok, () => JSON.stringify(made));
  const view = (name: string): Float32Array => {
    const bytes = made.value.bytes(name);
    return new Float32Array(bytes.buffer, bytes.byteOffset, count);
  };
  const x = samples();
  view("x").set(x);
  invariant(made.value.runSync({}).ok, () => "the program runs");
  const y = Float32Array.from(view("y"));
  made.value.dispose();
  return [x, y];
}

/** Units in the last place of the reference, as f32. */
function errorUlp(found: number, want: number): number {
  const rounded = Math.fround(want);
  if (Object.is(found, rounded) || found === rounded) return 0;
  if (Number.isNaN(found) && Number.isNaN(want)) return 0;
  const size = Math.max(Math.abs(want), 2 ** -126);
  const unit = 2 ** (Math.floor(Math.log2(size)) - 23);
  // A result below the smallest normal number may come out as zero.
  if (Math.abs(want) < 2 ** -126 && Math.abs(found) <= 2 ** -126) return 0;
  return Math.abs(found - want) / unit;
}

const here = (native.ok ? native.value.targets : []).filter((t) => t.startsWith("x64"));
const runs = here.flatMap((target) => mathRows.map((row) => ({ target, row })));

describe("f32 functions", () => {
  it.each(runs)("$row.name stays within its ulp on $target", ({ target, row }) => {
    for (const lanes of [1, target === "x64-avx512" ? 16 : 8]) {
      const [x, y] = evaluate(row.name, target, lanes);
      const errors = Array.from(x, (v, i) => errorUlp(y[i]!, references[row.name]!(v)));
      const worst = errors.indexOf(Math.max(...errors));
      expect(errors[worst], `${row.name}(${x[worst]}) = ${y[worst]}`).toBeLessThanOrEqual(
        row.maxUlp,
      );
    }
  });
});
