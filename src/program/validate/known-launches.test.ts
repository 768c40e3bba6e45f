import { expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import type { ProvedLaunches } from "./known-launches.ts";
import { validateProgram } from "./validate.ts";

/** x -> a -> b -> c -> y by kernels that are equal but for names; `third` is what the third of them reads. */
function copies(third: string, rows = 4): string[] {
  const kernel = (name: string, from: string, to: string, count = 4): string =>
    `kernel ${name} region "${name}" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < ${count} over t { store ${to}[i] = load.f32 ${from}[i] } }
    }`;
  const found = parseProgram(`program p for "wasm" {
    buffer x : input memory f32 [4] source "x"
    buffer a : scratch memory f32 [4] at scratch + (0)
    buffer b : scratch memory f32 [4] at scratch + (64)
    buffer c : scratch memory f32 [4] at scratch + (128)
    buffer d : scratch memory f32 [4] at scratch + (192)
    buffer y : output memory f32 [4] source "y"
    ${kernel("S0", "x", "a")}
    ${kernel("S1", "a", "b")}
    ${kernel("S2", third, "c", rows)}
    ${kernel("S3", "c", "y")}
    tasks {
      launch S0 after previous
      launch S1 after previous
      launch S2 after previous
      launch S3 after previous
    }
  }`);
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  const valid = validateProgram(found.value);
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

it("a launch that was proved under other names is proved", () => {
  expect(copies("b")).toEqual([]);
});

it("what is not written by then is another question", () => {
  expect(copies("d")).toContain("PRG021");
});

it("a kernel that differs by more than names is another question", () => {
  expect(copies("b", 3)).toContain("PRG021");
  expect(copies("b", 5)).toContain("PRG010");
});

/** y = x over N elements, of which the kernel takes `count`; its local value is called `local`. */
function copyOf(range: string, { count = "N", local = "v", to = "y" } = {}) {
  const found = parseProgram(`program p for "wasm" {
    parameter N in ${range}
    buffer x : input memory f32 [64] source "x"
    buffer ${to} : output memory f32 [N] source "y"
    buffer t8 : scratch memory f32 [4] at scratch + (0)
    kernel S0 region "S0" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < ${count} over t {
          let ${local} = load.f32 x[i]
          store ${to}[i] = ${local}
        }
      }
    }
    tasks { launch S0 after previous }
  }`);
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  return found.value;
}

it("programs share what is proved, where the ranges that it names are the same", () => {
  const proved: ProvedLaunches = new Map();
  const codes = (program: ReturnType<typeof copyOf>) => {
    const valid = validateProgram(program, { proved });
    return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
  };
  expect(codes(copyOf("1 to 64"))).toEqual([]);
  expect(proved.size).toBe(1);
  expect(codes(copyOf("1 to 64", { to: "z" }))).toEqual([]);
  expect(proved.size).toBe(1);
  // A wider range is another question, whatever was proved of this one.
  expect(codes(copyOf("1 to 65"))).toContain("PRG010");
  expect(codes(copyOf("1 to 64", { count: "min(N, 3)" }))).toContain("PRG020");
  expect(proved.size).toBe(1);
});

it("a local value that is called as a buffer elsewhere is no buffer", () => {
  const proved: ProvedLaunches = new Map();
  const program = copyOf("1 to 64", { local: "t8" });
  expect(validateProgram(program, { proved }).ok).toBe(true);
  const [key] = proved.keys();
  expect(key).not.toMatch(/f32 \[4\]/);
});

/** Two kernels alike: a block turns eight elements around in shared memory; the second one may forget to meet. */
function turned(second: "meets" | "does not meet") {
  const kernel = (name: string, from: string, to: string, barrier: string): string =>
    `kernel ${name} region "${name}" {
      grid blocks (b < 4)
      buffer tile : scratch shared f32 [8]
      role main copies 1 threads 8 as t {
        store tile[t] = load.f32 ${from}[8*b + t]
        ${barrier}
        store ${to}[8*b + t] = load.f32 tile[7 - t]
      }
    }`;
  const found = parseProgram(`program p for "h200" {
    buffer x : input memory f32 [32] source "x"
    buffer a : scratch memory f32 [32] at scratch + (0)
    buffer y : output memory f32 [32] source "y"
    ${kernel("S0", "x", "a", "barrier instance")}
    ${kernel("S1", "a", "y", second === "meets" ? "barrier instance" : "")}
    tasks {
      launch S0 after previous
      launch S1 after previous
    }
  }`);
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  return found.value;
}

it("threads that meet are proved once for kernels that differ by names alone", () => {
  const proved: ProvedLaunches = new Map();
  expect(validateProgram(turned("meets"), { proved }).ok).toBe(true);
  expect(proved.size).toBe(1);
  const wrong = validateProgram(turned("does not meet"), { proved });
  expect(wrong.ok ? [] : wrong.diagnostics.map((d) => d.code)).toContain("PRG021");
});

it("a kernel may be called as the buffer that it writes", () => {
  const found = parseProgram(`program p for "wasm" {
    buffer x : input memory f32 [4] source "x"
    buffer a : scratch memory f32 [4] at scratch + (0)
    buffer y : output memory f32 [4] source "y"
    kernel a region "a" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < 4 over t { store a[i] = load.f32 x[i] } }
    }
    kernel y region "y" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < 4 over t { store y[i] = load.f32 a[i] } }
    }
    tasks {
      launch a after previous
      launch y after previous
    }
  }`);
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  const proved: ProvedLaunches = new Map();
  for (let time = 0; time < 2; time++)
    expect(validateProgram(found.value, { proved }).ok).toBe(true);
});
