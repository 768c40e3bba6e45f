/**
 * Settings of V8 for a process that does its work once and ends. What the compiler runs is broad: a thousand
 * functions pass the engine's limit for its optimizing compiler within seconds, which then takes as much of
 * the processor as the program itself, and is seldom paid back. Baseline code from the first call, a later
 * limit and less inlining give most of the speed for a small part of that.
 *
 * Measured with `wavetile optimize`, processor time of the whole process against the defaults. Node.js 20
 * (V8 11.3), MobileNetV2 and MiniLM-L6: 0.67 and 0.62; of the main thread alone: 1.0 and 0.95. Later engines have
 * a compiler between baseline and optimizing; MobileNetV2 with Node.js 22 (V8 12.4): 0.75, 24 (13.6): 0.86,
 * 26 (14.6): 0.90.
 */
import { setFlagsFromString } from "node:v8";

const threeCompilers = [
  "--always-sparkplug",
  "--invocation-count-for-turbofan=12000",
  "--max-inlined-bytecode-size-cumulative=200",
];

/** By major version of V8: each was measured with that engine, since names change too. Others keep their defaults. */
const flagsOfEngine: Readonly<Record<string, readonly string[]>> = {
  "11": [
    "--always-sparkplug",
    "--interrupt-budget=300000",
    "--max-inlined-bytecode-size-cumulative=200",
  ],
  "12": threeCompilers,
  "13": threeCompilers,
  "14": threeCompilers,
};

/** Arguments for a process that is started. */
export function shortRunFlags(): readonly string[] {
  const [major] = (process.versions.v8 ?? "").split(".");
  return flagsOfEngine[major!] ?? [];
}

/** For the process that runs; functions that are compiled already stay as they are. */
export function expectShortRun(): void {
  for (const flag of shortRunFlags()) setFlagsFromString(flag);
}
