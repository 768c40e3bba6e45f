/** Subnormal numbers count as zero on every thread of a program, and the caller's control word comes back. */
import { describe, expect, it } from "vitest";
import { ConstantPool } from "../../emit/x64/constant-pool.ts";
import { FunctionCode } from "../../emit/x64/function-code.ts";
import { link } from "../../emit/x64/link.ts";
import { gpr, type Label, memory } from "../../emit/x64/operand.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { probeNativeFeatures } from "./features.ts";
import { createNativeInstance, type NativeInstance } from "./native-instance.ts";
import { NativeMemory } from "./native-memory.ts";

const here = probeNativeFeatures();
const general = (here.ok ? here.value.targets : []).filter((name) => name.startsWith("x64-"));

/** Products in f32 by one lane and by eight, and in f64; every thread has a fixed share, since it gives its number. */
const text = `program products for "x64" {
  buffer x : input memory f32 [96] source "x"
  buffer z : input memory f32 [96] source "z"
  buffer a : input memory f64 [96] source "a"
  buffer b : input memory f64 [96] source "b"
  buffer single : output memory f32 [96] source "single"
  buffer whole : output memory f32 [96] source "whole"
  buffer wide : output memory f64 [96] source "wide"
  buffer who : output memory i32 [96] source "who"
  kernel k region "k" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < 96 over th {
        store single[i] = mul(load.f32 x[i], load.f32 z[i])
        store wide[i] = mul(load.f64 a[i], load.f64 b[i])
        store who[i] = index.i32(th)
      }
      for j < 12 over th {
        store whole[j * 8] = mul(load.f32x8 x[j * 8], load.f32x8 z[j * 8])
      }
    }
  }
  tasks { launch k after previous }
}`;

function start(target: string, threads: number, system: NativeSystem): NativeInstance {
  const program = parseProgram(text);
  invariant(program.ok, () => JSON.stringify(program));
  const options = { system, threads, parallelism: threads, guards: true };
  const made = createNativeInstance(program.value, targets.get(target)!, options);
  invariant(made.ok, () => JSON.stringify(made));
  return made.value;
}

/** A subnormal operand, a subnormal product, and what has neither. */
const rows = [
  { f32: [1e-39, 1e30], f64: [5e-310, 1e300], flushed: [0, 0] },
  { f32: [1e-30, 1e-12], f64: [1e-300, 1e-12], flushed: [0, 0] },
  { f32: [3, 0.5], f64: [3, 0.5], flushed: [1.5, 1.5] },
] as const;

const words = {
  f32: [4, "setFloat32", "getFloat32"],
  f64: [8, "setFloat64", "getFloat64"],
} as const;

function put(instance: NativeInstance, name: string, type: "f32" | "f64", side: 0 | 1): void {
  const bytes = instance.bytes(name);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [size, set] = words[type];
  for (let i = 0; i < 96; i++) view[set](size * i, rows[i % 3]![type][side], true);
}

function fill(instance: NativeInstance): void {
  put(instance, "x", "f32", 0);
  put(instance, "z", "f32", 1);
  put(instance, "a", "f64", 0);
  put(instance, "b", "f64", 1);
}

function take(instance: NativeInstance, name: string, type: "f32" | "f64"): number[] {
  const bytes = instance.bytes(name);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [size, , get] = words[type];
  return Array.from({ length: 96 }, (_, i) => view[get](size * i, true));
}

/** Flush to zero, denormals are zero. */
const flushing = 0x8040;

/** Code that writes MXCSR where its pointer says, and code that reads it from there. */
function controlCode(system: NativeSystem, memory_: NativeMemory) {
  let labels = 0;
  const newLabel = (): Label => ({ kind: "label", id: labels++ });
  const made = (["vstmxcsr", "vldmxcsr"] as const).map((op) => {
    const constants = new ConstantPool(newLabel());
    const f = new FunctionCode(op, { constants, newLabel, reservedBytes: 0 });
    f.emit(op, memory(gpr(system.kind === "windows" ? 1 : 7))).emit("ret");
    const code = memory_.mapCode(link([f], constants, { vectors: 16, vectorBits: 256 }).bytes);
    return system.functionAt(code!);
  });
  const word = memory_.map(64);
  const view = new Uint32Array(system.view(word, 64));
  const [store, load] = made as [(typeof made)[0], (typeof made)[0]];
  return {
    read: (): number => {
      store(word);
      return view[0]!;
    },
    write: (control: number): void => {
      view[0] = control;
      load(word);
    },
  };
}

describe.skipIf(!here.ok)("the control word of floating point", () => {
  const system = here.ok ? here.value.system : (undefined as never);

  it.each(general.flatMap((t) => [1, 2, 3].map((threads) => [t, threads] as const)))(
    "flushes subnormal numbers on %s with %i threads, and is the caller's again",
    (target, threads) => {
      const instance = start(target, threads, system);
      for (let round = 0; round < 3; round++) {
        fill(instance);
        expect(instance.runSync({}).ok).toBe(true);
        const wanted = Array.from({ length: 96 }, (_, i) => rows[i % 3]!.flushed[0]);
        expect(take(instance, "single", "f32")).toEqual(wanted);
        expect(take(instance, "whole", "f32")).toEqual(wanted);
        expect(take(instance, "wide", "f64")).toEqual(wanted);
        // The engine computes with the control word of this thread: its bits tell, not a comparison of numbers.
        const sum = new Float64Array([Number.MIN_VALUE, 0]);
        sum[1] = sum[0]! + sum[0]!;
        expect(new BigUint64Array(sum.buffer)[1]).toBe(2n);
      }
      const who = instance.bytes("who");
      const numbers = new Int32Array(who.buffer, who.byteOffset, 96);
      expect(new Set(numbers).size).toBe(threads);
      instance.dispose();
    },
  );

  it("comes back as it was, whatever it was", () => {
    const pages = new NativeMemory(system);
    const control = controlCode(system, pages);
    const instance = start("x64-avx2", 2, system);
    fill(instance);
    const before = control.read();
    const usual = before & ~flushing;
    // Modes of callers: that of the engine, rounding towards zero, flush to zero alone, denormals are zero alone.
    const modes = [usual, usual | 0x6000, usual | 0x8000, usual | 0x0040, usual | 0xe040];
    const flags = 0x3f;
    const found = modes.map((mode) => {
      control.write(mode);
      const { ok } = instance.runSync({});
      const after = control.read();
      control.write(before);
      return [ok, after & ~flags];
    });
    expect(found).toEqual(modes.map((mode) => [true, mode & ~flags]));
    instance.dispose();
    pages.unmap();
  });
});
