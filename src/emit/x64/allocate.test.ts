import { describe, expect, test } from "vitest";
import { Rng } from "../../support/rng.ts";
import { allocateRegisters } from "./allocate.ts";
import { ConstantPool } from "./constant-pool.ts";
import { FunctionCode, type PlacedInstruction } from "./function-code.ts";
import { gpr, type Label, type Memory, type Operand, type Register } from "./operand.ts";

const file = { vectors: 16, vectorBits: 256 } as const;
const bits = 256;
/** Where the inputs lie and where results go, as seen from the context, which keeps its register. */
const [inputs, results] = [4096, 8192];
const word = (disp: number): Memory => ({ kind: "memory", base: gpr(15), scale: 1, disp });

function newFunction(): FunctionCode {
  let labels = 0;
  const newLabel = (): Label => ({ kind: "label", id: labels++ });
  return new FunctionCode("f", {
    constants: new ConstantPool(newLabel()),
    newLabel,
    reservedBytes: 0,
  });
}

test("vectors that nothing reads are not computed", () => {
  const f = newFunction();
  const [kept, first, second] = [f.vec(bits), f.vec(bits), f.vec(bits)];
  f.emit("vmovups", kept, word(inputs)).emit("vmovups", first, word(inputs + 32));
  f.emit("vaddps", second, first, kept).emit("vmulps", f.vec(bits), second, first);
  f.emit("vmovups", word(results), kept);
  const { instructions } = allocateRegisters(f, file);
  expect(instructions.map((i) => i.op)).toEqual(["vmovups", "vmovups"]);
});

interface Shape {
  readonly sums: number;
  readonly operands: number;
  /** Values that live at once while one finished sum is worked on. */
  readonly chain: number;
  /** Instructions that the next sum waits for beside that. */
  readonly wait: number;
  readonly outer: number;
  readonly inner: number;
  /** The loops are left out where the count at `word(0)` is not positive. */
  readonly isGuarded: boolean;
}

/** In a loop: sums of products of inputs in a further one, then arithmetic on each that takes registers. */
function sumsWithEpilogue(shape: Shape): FunctionCode {
  const { sums, operands, outer, inner, isGuarded } = shape;
  const f = newFunction();
  const accumulators = Array.from({ length: sums }, () => f.vec(bits));
  inCounted(f, outer, () => {
    for (const a of accumulators) f.emit("vxorps", a, a, a);
    const end = f.label();
    if (isGuarded) {
      const count = f.gpr();
      f.emit("mov", count, word(0)).emit("cmp", count, 1).emit("jl", end);
    }
    inCounted(f, inner, () => {
      const read = Array.from({ length: operands }, (_, i) => {
        const r = f.vec(bits);
        f.emit("vmovups", r, word(inputs + 32 * i));
        return r;
      });
      accumulators.forEach((a, i) => {
        f.emit("vfmadd231ps", a, read[i % operands]!, read[(i + 1) % operands]!);
      });
    });
    f.place(end);
    for (const [at, a] of accumulators.entries()) writeResult(f, a, { ...shape, at });
  });
  return f.emit("ret");
}

function writeResult(
  f: FunctionCode,
  sum: Register,
  { chain, wait, at }: Shape & { readonly at: number },
): void {
  const values = [sum];
  for (let n = 0; n < chain; n++) {
    const v = f.vec(bits);
    f.emit("vaddps", v, values.at(-1)!, values[n >> 1]!);
    values.push(v);
  }
  // All of them are wanted to the end.
  const total = f.vec(bits);
  f.emit("vxorps", total, total, total);
  for (const v of values) f.emit("vaddps", total, total, v);
  for (let n = 0; n < wait; n++) f.emit("vaddps", total, total, total);
  f.emit("vmovups", word(results + 32 * at), total);
}

function inCounted(f: FunctionCode, trips: number, fill: () => void): void {
  const i = f.gpr();
  const head = f.label();
  f.emit("mov", i, 0);
  f.inLoop(() => {
    f.place(head);
    fill();
    f.emit("add", i, 1).emit("cmp", i, trips).emit("jl", head);
  });
}

/** What the instructions leave in memory, one number for a vector. */
function execute(body: readonly PlacedInstruction[], memory: Map<number, number>): void {
  const registers = new Map<string, number>();
  const keyOf = (r: Register): string => `${r.class}${r.id}`;
  const place = (m: Memory): number => (m.base?.id === 4 ? 1e6 : 0) + m.disp;
  const get = (o: Operand): number => {
    if (o.kind === "register") return registers.get(keyOf(o)) ?? Number.NaN;
    if (o.kind === "memory") return memory.get(place(o)) ?? Number.NaN;
    return o.kind === "immediate" ? Number(o.value) : 0;
  };
  const put = (o: Operand, value: number): void => {
    if (o.kind === "register") registers.set(keyOf(o), value);
    else if (o.kind === "memory") memory.set(place(o), value);
  };
  const labels = new Map(
    body.flatMap(({ op, operands: [o] }, at) =>
      op === "label" && o?.kind === "label" ? [[o.id, at] as const] : [],
    ),
  );
  let compared = 0;
  for (let at = 0; at < body.length; at++) {
    const { op, operands } = body[at]!;
    const [a, b, c] = operands as [Operand, Operand, Operand];
    if (op === "ret") return;
    if (op === "cmp") compared = get(a) - get(b);
    else if (op === "jl" && a.kind === "label" && compared < 0) at = labels.get(a.id)!;
    else if (op === "vxorps") put(a, 0);
    else if (op === "vaddps") put(a, get(b) + get(c));
    else if (op === "vfmadd231ps") put(a, get(a) + get(b) * get(c));
    else if (op === "add") put(a, get(a) + get(b));
    else if (op === "mov" || op === "vmovups" || op === "vmovaps") put(a, get(b));
    else if (op !== "label" && op !== "jl") throw new Error(`no meaning for ${op}`);
  }
}

function resultsOf(body: readonly PlacedInstruction[], sums: number, count: number): number[] {
  const memory = new Map<number, number>([[0, count]]);
  for (let i = 0; i < 8; i++) memory.set(inputs + 32 * i, i + 1);
  execute(body, memory);
  return Array.from({ length: sums }, (_, i) => memory.get(results + 32 * i)!);
}

/** Instructions of the innermost loop that touch the stack. */
function stackInLoop(body: readonly PlacedInstruction[]): number {
  const deepest = Math.max(...body.map((i) => i.depth));
  return body.filter(
    ({ depth, operands }) =>
      depth === deepest && operands.some((o) => o.kind === "memory" && o.base?.id === 4),
  ).length;
}

describe("allocateRegisters", () => {
  const full = { sums: 12, operands: 4, chain: 6, wait: 100, outer: 2, inner: 3, isGuarded: false };

  test("what is done to sums behind their loop takes no register from them in it", () => {
    const f = sumsWithEpilogue(full);
    const { instructions, spills } = allocateRegisters(f, file);
    expect(spills).toBeGreaterThan(0);
    expect(stackInLoop(instructions)).toBe(0);
    const guarded = sumsWithEpilogue({ ...full, isGuarded: true });
    expect(stackInLoop(allocateRegisters(guarded, file).instructions)).toBe(0);
  });

  test("allocated code computes what the code computes", () => {
    const rng = new Rng(5);
    for (let trial = 0; trial < 40; trial++) {
      const shape = {
        sums: rng.integer(1, 18),
        operands: rng.integer(1, 6),
        chain: rng.integer(0, 12),
        wait: rng.integer(0, 1) * 60,
        outer: rng.integer(1, 3),
        inner: rng.integer(1, 3),
        isGuarded: rng.integer(0, 1) === 1,
      };
      const f = sumsWithEpilogue(shape);
      const { instructions } = allocateRegisters(f, file);
      for (const count of [0, 1]) {
        const want = resultsOf([...f.prologue, ...f.body], shape.sums, count);
        expect(resultsOf(instructions, shape.sums, count), JSON.stringify(shape)).toEqual(want);
      }
    }
  });

  /** Sums of products of loaded operands, each used again once others have been; `between` follows the first uses. */
  function reused(between: (f: FunctionCode) => void): FunctionCode {
    const f = newFunction();
    const sums = Array.from({ length: 12 }, () => f.vec(bits));
    for (const a of sums) f.emit("vxorps", a, a, a);
    inCounted(f, 3, () => {
      const read = Array.from({ length: 8 }, (_, i) => {
        const [loaded, r] = [f.vec(bits), f.vec(bits)];
        f.emit("vmovups", loaded, word(inputs + 32 * i)).emit("vmovups", r, loaded);
        return r;
      });
      for (const [i, a] of sums.entries()) {
        f.emit("vfmadd231ps", a, read[i % 8]!, read[(i + 1) % 8]!);
      }
      between(f);
      for (const [i, a] of sums.entries()) {
        f.emit("vfmadd231ps", a, read[i % 8]!, read[(i + 3) % 8]!);
      }
    });
    for (const [i, a] of sums.entries()) f.emit("vmovups", word(results + 32 * i), a);
    return f.emit("ret");
  }

  test("operands that registers have no room for are loaded again, not put on the stack", () => {
    const f = reused(() => {});
    const { instructions, spills, reloads } = allocateRegisters(f, file);
    expect([spills, stackInLoop(instructions)]).toEqual([0, 0]);
    expect(reloads).toBeGreaterThan(0);
    expect(resultsOf(instructions, 12, 1)).toEqual(resultsOf(f.body, 12, 1));
  });

  test("a register that is written anew behind a branch is not what was loaded again before it", () => {
    const f = newFunction();
    // Alive at once with what is loaded first: more than there are registers.
    const first = f.vec(bits);
    f.emit("vmovups", first, word(inputs));
    const others = Array.from({ length: 18 }, (_, i) => {
      const r = f.vec(bits);
      f.emit("vmovups", r, word(inputs + 32 * (i % 8)));
      return r;
    });
    const sum = f.vec(bits);
    f.emit("vxorps", sum, sum, sum);
    for (const r of others) f.emit("vaddps", sum, sum, r);
    f.emit("vaddps", sum, sum, first);
    const [count, end] = [f.gpr(), f.label()];
    f.emit("mov", count, word(0)).emit("cmp", count, 1).emit("jl", end);
    f.place(end);
    f.emit("vaddps", first, sum, sum);
    f.emit("vmovups", word(results), first);
    f.emit("ret");
    const { instructions, reloads } = allocateRegisters(f, file);
    expect(reloads).toBeGreaterThan(0);
    expect(resultsOf(instructions, 1, 1)).toEqual(resultsOf(f.body, 1, 1));
  });

  test("what is written over in between is not loaded again", () => {
    const f = reused((g) => {
      const zero = g.vec(bits);
      g.emit("vxorps", zero, zero, zero);
      for (let i = 0; i < 8; i++) g.emit("vmovups", word(inputs + 32 * i), zero);
    });
    const { instructions } = allocateRegisters(f, file);
    expect(resultsOf(instructions, 12, 1)).toEqual(resultsOf(f.body, 12, 1));
  });
});
