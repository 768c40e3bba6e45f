import { describe, expect, it } from "vitest";
import { erf } from "../../semantics/erf.ts";
import { halfRows } from "./half-rows.ts";
import { Library } from "./library.ts";
import { mathRows } from "./math-rows.ts";
import { ModuleBuilder } from "./module-builder.ts";

const references: Record<string, (x: number) => number> = {
  exp: Math.exp,
  log: Math.log,
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  erf,
  sin: Math.sin,
  cos: Math.cos,
};

const lanes = 4;

/** The library function over an array, four lanes at a time. */
function compile(name: string): (values: Float32Array) => Float32Array {
  const module = new ModuleBuilder();
  module.memory({ minPages: 64 });
  module.exportMemory("memory");
  const rows = new Map([...mathRows.map((r) => [r.name, r.row] as const), ...halfRows]);
  const library = new Library(module, rows);
  library.importMath(["sin", "cos"]);
  const { index } = module.function("run", { params: ["i32"], results: [] }, (f) => {
    const end = f.param(0);
    const at = f.local("i32");
    f.loop((again) => {
      f.get(at).get(at).memory("v128.load");
      library.call(f, name);
      f.memory("v128.store").get(at).i32Const(16).op("i32.add").tee(at);
      f.get(end).op("i32.lt_u").brIf(again);
    });
  });
  module.exportFunction("run", index);
  const compiled = new WebAssembly.Module(module.encode().bytes);
  const { exports } = new WebAssembly.Instance(compiled, { math: Math as never });
  const memory = new Float32Array((exports.memory as WebAssembly.Memory).buffer);
  return (values) => {
    memory.set(values);
    (exports.run as (bytes: number) => void)(values.length * 4);
    return memory.slice(0, values.length);
  };
}

/** Every 4099th of all finite floats, and a dense walk where the functions bend. */
function samples(): Float32Array {
  const values: number[] = [];
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  for (let b = 0; b < 2 ** 32; b += 4099 * lanes) {
    bits[0] = b;
    if (Number.isFinite(float[0]!)) values.push(float[0]!);
  }
  for (let x = -110; x < 110; x += 0.0013) values.push(x);
  for (let x = -4.2; x < 4.2; x += 0.00011) values.push(x);
  values.push(0, -0, 1, -1, Math.PI, 1e-45, -1e-45);
  return Float32Array.from(values.slice(0, values.length - (values.length % lanes)));
}

function ulp(x: number): number {
  return 2 ** (Math.max(Math.floor(Math.log2(Math.abs(x))), -126) - 23);
}

describe("math functions of four lanes", () => {
  const inputs = samples();

  it.each(mathRows)("$name stays within $maxUlp ulp", ({ name, maxUlp }) => {
    const outputs = compile(name)(inputs);
    const reference = references[name.split(".")[0]!]!;
    let worst = { ulps: 0, x: 0 };
    inputs.forEach((x, i) => {
      const [got, exact] = [outputs[i]!, reference(x)];
      const wanted = Math.fround(exact);
      if (Object.is(got, wanted) || (got === 0 && wanted === 0)) return;
      const ulps = Math.abs(got - exact) / ulp(exact);
      if (!(ulps <= worst.ulps)) worst = { ulps, x };
    });
    expect(worst.ulps, `at ${worst.x}`).toBeLessThanOrEqual(maxUlp);
  });

  it("gives Math's results for special values", () => {
    const specials = Float32Array.of(Number.NaN, Infinity, -Infinity, 0, -0, 1, -1, 1e38);
    for (const { name } of mathRows) {
      const outputs = compile(name)(specials);
      const reference = references[name.split(".")[0]!]!;
      specials.forEach((x, i) => {
        const wanted = Math.fround(reference(x));
        if (Number.isFinite(wanted)) expect(outputs[i], `${name}(${x})`).toBeCloseTo(wanted, 6);
        else expect(outputs[i], `${name}(${x})`).toBe(wanted);
      });
    }
  });
});
