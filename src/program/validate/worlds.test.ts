/** Branches of a kernel that are never taken in one launch. */
import { expect, test } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

function codesOf(body: string): readonly string[] {
  const read = parseProgram(`program p for "wasm" {
    parameter M in 1 to 6
    buffer x : input memory f32 [48] at caller + (0) source "x"
    buffer y : output memory f32 [48] at caller + (256) source "y"
    kernel make region "make" {
      grid threads (t < threads)
      role main copies 1 threads 1 { ${body} }
    }
    tasks { launch make after previous }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  const result = validateProgram(read.value);
  return result.ok ? [] : [...new Set(result.diagnostics.map((d) => d.code))];
}

/** Windows of `size` dealt out to the threads, numbered by that size alone. */
const dealt = (size: number): string =>
  `for w < ${48 / size} over t { for j < ${size} { store y[${size}*w + j] = load.f32 x[${size}*w + j] } }`;

test("loops over windows of their own, one of which runs", () => {
  expect(codesOf(dealt(8))).toEqual([]);
  expect(codesOf(`if -M + 1 >= 0 { ${dealt(8)} } else { ${dealt(12)} }`)).toEqual([]);
  expect(codesOf(`if -M + 3 >= 0 { ${dealt(12)} } else { ${dealt(16)} }`)).toEqual([]);
  // Three worlds are two with two in one of them.
  const three = (last: string) =>
    `if -M + 1 >= 0 { ${dealt(8)} } else { if -M + 2 >= 0 { ${dealt(12)} } else { ${last} } }`;
  expect(codesOf(three(dealt(16)))).toEqual([]);
  expect(codesOf(three(`${dealt(8)} ${dealt(12)}`))).toContain("PRG030");
});

test.each([
  ["both run", `${dealt(8)} ${dealt(12)}`],
  [
    "both may run",
    `if -M + 3 >= 0 { ${dealt(8)} } if M - 3 >= 0 { ${dealt(12)} } else { ${dealt(8)} }`,
  ],
  ["one always runs", `if -M + 1 >= 0 { ${dealt(8)} } ${dealt(12)}`],
  [
    "what is asked differs from trip to trip",
    `for m < M { if m - 1 >= 0 { ${dealt(8)} } else { ${dealt(12)} } }`,
  ],
  [
    "a branch has a race by itself",
    `if -M + 1 >= 0 { for w < 6 over t { for j < 8 { store y[4*w + j] = load.f32 x[j] } } } else { ${dealt(12)} }`,
  ],
])("races are found where %s", (_, body) => {
  expect(codesOf(body)).toContain("PRG030");
});
