/** A program whose result is right only if every part of every launch runs once, after all of the launch before. */
import type { Program } from "../program/program.ts";
import { parseProgram } from "../program/program-parse.ts";

/** 100 times: y[i] += x[i + r], then a step of one thread that x of the next trip depends on, then y[i] *= -1. */
export function countingProgram(): Program {
  const read = parseProgram(`program p for "wasm" {
    parameter N in 1 to 300
    buffer x : input memory f32 [400] at caller + (0) source "x"
    buffer s : scratch memory f32 [400] at scratch + (0)
    buffer y : output memory f32 [N] at caller + (1600) source "y"
    kernel clear region "clear" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < N over t { store y[i] = f32(0) } }
    }
    kernel shift region "shift" {
      grid threads (t < 1)
      role main copies 1 threads 1 { for i < 400 { store s[i] = add(load.f32 x[i], f32(1)) } store s[0] = neg(load.f32 x[0]) }
    }
    kernel add region "add" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        if -N + 2 >= 0 {
          for i < N over t { store y[i] = add(load.f32 y[i], load.f32 s[i + r]) }
        } else {
          for j < ceilDiv(N, 2) over t {
            for k < min(2, N - 2*j) { store y[2*j + k] = add(load.f32 y[2*j + k], load.f32 s[2*j + k + r]) }
          }
        }
      }
    }
    kernel turn region "turn" {
      grid threads (t < 7)
      role main copies 1 threads 1 {
        for i < ceilDiv(N - t, 7) { store y[7*i + t] = neg(load.f32 y[7*i + t]) }
      }
    }
    tasks {
      launch clear after previous
      repeat r < 100 {
        launch shift after previous
        launch add after previous bind r = r
        launch turn after previous
      }
    }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  return read.value;
}

export const countedInput = Float32Array.from({ length: 400 }, (_, i) => (i * 37) % 101);

export function counted(n: number): number[] {
  const s = [...countedInput].map((v, i) => (i === 0 ? -v : v + 1));
  let y = new Array<number>(n).fill(0);
  for (let r = 0; r < 100; r++) y = y.map((v, i) => -(v + s[i + r]!));
  return y;
}
