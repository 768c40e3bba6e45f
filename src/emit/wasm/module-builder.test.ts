import binaryen from "binaryen";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FunctionBuilder } from "./function-builder.ts";
import { ModuleBuilder } from "./module-builder.ts";
import type { PlainOp, ValueType } from "./opcodes.ts";

function instantiate(
  module: ModuleBuilder,
  imports: Record<string, Record<string, unknown>> = {},
): Record<string, (...args: unknown[]) => unknown> {
  const { bytes } = module.encode();
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), imports);
  return instance.exports as Record<string, (...args: unknown[]) => unknown>;
}

/** Compiles one exported function and returns it. */
function compileFunction(
  params: ValueType[],
  results: ValueType[],
  body: (f: FunctionBuilder) => void,
): (...args: unknown[]) => unknown {
  const module = new ModuleBuilder();
  module.memory({ minPages: 1 });
  module.exportFunction("f", module.function("f", { params, results }, body).index);
  return instantiate(module).f!;
}

function binary(op: PlainOp, type: ValueType, result: ValueType = type) {
  return compileFunction([type, type], [result], (f) => f.get(f.param(0)).get(f.param(1)).op(op));
}

describe("executed instructions", () => {
  const i32 = fc.integer();

  it("computes i32 arithmetic as JavaScript does", () => {
    const cases: [PlainOp, (a: number, b: number) => number][] = [
      ["i32.add", (a, b) => (a + b) | 0],
      ["i32.sub", (a, b) => (a - b) | 0],
      ["i32.mul", Math.imul],
      ["i32.and", (a, b) => a & b],
      ["i32.shl", (a, b) => a << b],
      ["i32.shr_s", (a, b) => a >> b],
      ["i32.shr_u", (a, b) => (a >>> b) | 0],
      ["i32.lt_s", (a, b) => Number(a < b)],
      ["i32.lt_u", (a, b) => Number(a >>> 0 < b >>> 0)],
      ["i32.ge_u", (a, b) => Number(a >>> 0 >= b >>> 0)],
    ];
    for (const [op, expected] of cases) {
      const run = binary(op, "i32");
      fc.assert(fc.property(i32, i32, (a, b) => run(a, b) === expected(a, b)));
    }
  });

  it("computes f32, f64 and i64 arithmetic", () => {
    const [sub, div, add] = [
      binary("f32.sub", "f32"),
      binary("f64.div", "f64"),
      binary("i64.add", "i64"),
    ];
    fc.assert(
      fc.property(
        fc.float(),
        fc.float(),
        fc.double(),
        fc.bigInt({ min: 0n, max: 9n }),
        (a, b, c, d) => {
          expect(sub(a, b)).toBe(Math.fround(a - b));
          expect(div(c, a)).toBe(c / a);
          expect(add(d, -d)).toBe(0n);
        },
      ),
    );
  });

  it("writes constants of every type", () => {
    fc.assert(
      fc.property(i32, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (a, b) => {
        expect(compileFunction([], ["i32"], (f) => f.i32Const(a))()).toBe(a);
        expect(compileFunction([], ["i64"], (f) => f.i64Const(b))()).toBe(b);
      }),
      { numRuns: 50 },
    );
    expect(compileFunction([], ["f32"], (f) => f.f32Const(0.1))()).toBe(Math.fround(0.1));
    expect(compileFunction([], ["f64"], (f) => f.f64Const(0.1))()).toBe(0.1);
  });

  it("writes vector constants, shuffles and lanes in order", () => {
    const bytes = Array.from({ length: 16 }, (_, i) => i);
    for (let lane = 0; lane < 16; lane++) {
      const run = compileFunction([], ["i32"], (f) => {
        f.v128Const(bytes).v128Const(bytes.map((b) => b + 16));
        f.shuffle(bytes.map((b) => 31 - b)).lane("i8x16.extract_lane_u", lane);
      });
      expect(run()).toBe(31 - lane);
    }
  });

  it("loads with constant offsets and stores back", () => {
    const run = compileFunction(["i32", "f32"], ["f32"], (f) => {
      f.get(f.param(0)).get(f.param(1)).memory("f32.store", 65000);
      f.get(f.param(0)).i32Const(4).op("i32.add").memory("f32.load", 64996);
    });
    expect(run(16, 2.5)).toBe(2.5);
  });

  it("fills, copies and initialises memory in bulk", () => {
    const module = new ModuleBuilder();
    module.memory({ minPages: 1 });
    module.activeData(Uint8Array.of(9, 8, 7), 100);
    const segment = module.passiveData(Uint8Array.of(1, 2, 3, 4));
    const { index } = module.function("f", { params: [], results: ["i32"] }, (f) => {
      f.i32Const(0).i32Const(0xff).i32Const(8).memoryFill();
      f.i32Const(1).i32Const(0).i32Const(2).memoryInit(segment).dataDrop(segment);
      f.i32Const(2).i32Const(100).i32Const(1).memoryCopy();
      f.i32Const(0).memory("i32.load");
      f.memorySize().op("drop").i32Const(1).memoryGrow().op("drop").atomicFence();
    });
    module.exportFunction("f", index);
    expect(instantiate(module).f!()).toBe(0xff0901ff | 0);
  });
});

describe("control", () => {
  it("sums with a loop and leaves through a block", () => {
    const run = compileFunction(["i32"], ["i32"], (f) => {
      const [n, sum] = [f.param(0), f.local("i32")];
      f.block((leave) => {
        f.loop((again) => {
          f.get(n).op("i32.eqz").brIf(leave);
          f.get(sum).get(n).op("i32.add").set(sum);
          f.get(n).i32Const(1).op("i32.sub").set(n).br(again);
        });
      });
      f.get(sum);
    });
    fc.assert(fc.property(fc.nat(1000), (n) => run(n) === (n * (n + 1)) / 2));
  });

  it("chooses with if and else, with a result", () => {
    const run = compileFunction(["i32"], ["f64"], (f) => {
      f.get(f.param(0)).if(
        () => f.f64Const(1),
        () => f.f64Const(2),
        "f64",
      );
    });
    expect([run(1), run(0)]).toEqual([1, 2]);
  });

  it("branches by table", () => {
    const run = compileFunction(["i32"], ["i32"], (f) => {
      f.block((outer) => {
        f.block((middle) => {
          f.block((inner) => f.get(f.param(0)).brTable([inner, middle], outer));
          f.i32Const(10).op("return");
        });
        f.i32Const(20).op("return");
      });
      f.i32Const(30);
    });
    expect([0, 1, 2, 9].map((n) => run(n))).toEqual([10, 20, 30, 30]);
  });

  it("refuses a branch to a closed label", () => {
    const build = () =>
      compileFunction([], [], (f) => {
        let closed: Parameters<FunctionBuilder["br"]>[0] | undefined;
        f.block((b) => {
          f.block((l) => {
            closed = l;
          });
          f.br(b);
        });
        f.br(closed!);
      });
    expect(build).toThrow("branch to a closed block");
  });
});

describe("module", () => {
  it("imports memory and functions, exports globals, calls", () => {
    const module = new ModuleBuilder();
    const log = module.importFunction("env", "log", { params: ["i32"], results: [] });
    module.importMemory("env", "memory", { minPages: 1, maxPages: 2, shared: true });
    const counter = module.global({ type: "i32", mutable: true, initial: -5 });
    module.exportGlobal("scale", module.global({ type: "f64", mutable: false, initial: 0.5 }));
    const next = module.function("next", { params: [], results: ["i32"] }, (f) => {
      f.globalGet(counter).i32Const(1).op("i32.add").globalSet(counter).globalGet(counter);
    });
    const { index } = module.function("run", { params: [], results: [] }, (f) => {
      f.call(next.index).call(log).i32Const(4).i32Const(77).memory("i32.atomic.store");
    });
    module.exportFunction("run", index);
    module.exportMemory("memory");
    const seen: number[] = [];
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
    const exports = instantiate(module, { env: { memory, log: (n: number) => seen.push(n) } });
    exports.run!();
    expect([seen, new Int32Array(memory.buffer)[1]]).toEqual([[-4], 77]);
    expect((exports.scale as unknown as { value: number }).value).toBe(0.5);
    expect(exports.memory).toBe(memory);
  });

  it("names functions and maps code back to marks", () => {
    const module = new ModuleBuilder();
    module.function("conv_3", { params: [], results: [] }, (f) => {
      f.mark("first").i32Const(1).op("drop");
      f.mark("second").op("nop");
    });
    const { bytes, map } = module.encode();
    const text = binaryen.readBinary(bytes);
    expect(text.emitText()).toContain("$conv_3");
    text.dispose();
    expect(map.map((r) => [r.subject, [...bytes.subarray(r.start, r.end)]])).toEqual([
      ["first", [0x41, 1, 0x1a]],
      ["second", [0x01, 0x0b]],
    ]);
  });

  it("declares locals in runs and reuses released ones", () => {
    const module = new ModuleBuilder();
    module.function("f", { params: ["i32"], results: [] }, (f) => {
      const a = f.local("f32");
      f.local("f32");
      const v = f.local("v128");
      f.release(a);
      expect(f.local("f32")).toBe(a);
      expect([a.index, v.index]).toEqual([1, 3]);
    });
    const bytes = [...module.encode().bytes];
    expect(bytes.join()).toContain([2, 2, 0x7d, 1, 0x7b, 0x0b].join());
  });

  it("encodes fifty thousand instructions in well under a second", () => {
    const module = new ModuleBuilder();
    const started = performance.now();
    module.function("f", { params: ["i32"], results: [] }, (f) => {
      const v = f.local("v128");
      for (let i = 0; i < 12_500; i++) {
        f.get(f.param(0))
          .memory("v128.load", i * 16)
          .op("f32x4.sqrt")
          .set(v);
      }
    });
    const { bytes } = module.encode();
    expect(performance.now() - started).toBeLessThan(500);
    expect(bytes.length).toBeGreaterThan(100_000);
  });
});
