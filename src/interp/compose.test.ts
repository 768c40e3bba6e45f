/**
 * Composition of two statements, as an epilogue and inlined, against running them one after the other:
 * random producers and readers, most of which do not fit. What is composed computes the same, what is
 * refused says why, and the reasons that matter all occur.
 */
import { describe, expect, it } from "vitest";
import { analyseProgram, applyGroups, composeGroup } from "../region/form-region.ts";
import type { Group, NestProgram } from "../region/nest.ts";
import { parseNests } from "../region/nest-reader.ts";
import { type RefTensor, randomRef } from "../semantics/tensor.ts";
import { formatDiagnostic } from "../support/diagnostic.ts";
import { InternalError } from "../support/invariant.ts";
import { Rng } from "../support/rng.ts";
import { runNests } from "./nest.ts";

const extent = 6;

function parse(text: string): NestProgram {
  const parsed = parseNests(text);
  if (parsed.ok) return parsed.value;
  throw new Error(`${parsed.diagnostics.map(formatDiagnostic).join("\n")}\n${text}`);
}

/** Makes t: whole or in part, straight or turned, with or without a reduction and a finish. */
function randomProducer(rng: Rng): string {
  const rows = rng.uniform() < 0.85 ? extent : extent - 2;
  const to = rng.uniform() < 0.8 ? "t[i, j]" : rng.pick(["t[j, i]", "t[i, 0]", "t[i, 5 - j]"]);
  const head = `{i in ${rows}, j in ${to === "t[j, i]" ? rows : extent}`;
  const where = rng.uniform() < 0.1 ? " where 4 - j >= 0" : "";
  const pad =
    rng.uniform() < 0.3 ? `(x[i - 1, j] if i - 1 >= 0 else ${rng.pick([0, 2])})` : "x[i, j]";
  const body = rng.pick([pad, `mul(${pad}, v[j])`, `exp(${pad})`, `relu(${pad})`, "index<f32>(i)"]);
  const finish = " finish (add(_0, v[j]))";
  if (rng.uniform() < 0.3) {
    const sum = "reduce<sum, f32, reassociates>(mul(x[i, k], x[k, j]))";
    return `${head}, reduce k in ${extent}}${where} { ${to} = ${sum}${rng.uniform() < 0.5 ? finish : ""} }`;
  }
  return `${head}}${where} { ${to} = (${body})${rng.uniform() < 0.1 ? finish : ""} }`;
}

/** Reads t once or twice, at its own place or another, padded or not, over all of it or a part. */
function randomReader(rng: Rng): { readonly text: string; readonly shape: readonly number[] } {
  const shape = [rng.pick([extent, extent, extent - 2]), extent];
  const place = (): string => {
    const at = rng.pick(["i, j", "i, j", "i, j", "j, i", "i, 0", "5 - i, j", "i, 5 - j"]);
    if (rng.uniform() < 0.75) return `t[${at}]`;
    return `(t[i - 1, j] if i - 1 >= 0 else ${rng.pick([0, 1, 2, "-inf"])})`;
  };
  const one = place();
  const value = rng.pick([one, `neg(${one})`, `add(${one}, ${place()})`, `add(${one}, v[j])`]);
  const loops = `i in ${shape[0]}, j in ${shape[1]}`;
  if (rng.uniform() < 0.25) {
    const text = `{i in ${shape[0]}, reduce j in ${shape[1]}} { y[i] = reduce<max, f32, exact>(${value}) }`;
    return { text, shape: [shape[0]!] };
  }
  const outer = rng.uniform() < 0.1 ? `k in 2, ${loops}` : loops;
  const index = outer === loops ? "i, j" : "k, i, j";
  return {
    text: `{${outer}} { y[${index}] = (${value}) }`,
    shape: outer === loops ? shape : [2, ...shape],
  };
}

function randomPair(rng: Rng): string {
  const reader = randomReader(rng);
  return `nests "pair" (x, v) -> (y) {
    input x : f32[6, 6] input v : f32[6] intermediate t : f32[6, 6] output y : f32[${reader.shape.join(", ")}]
    statement S0 "" ${randomProducer(rng)}
    statement S1 "" ${reader.text}
  }`;
}

const epilogue: Group = { name: "S0", anchor: "S0", inlined: [], epilogue: ["S1"] };
const inlined: Group = { name: "S1", anchor: "S1", inlined: ["S0"], epilogue: [] };

/** y; undefined where the program reads what nobody wrote. */
function run(program: NestProgram, given: ReadonlyMap<string, RefTensor>): RefTensor | undefined {
  try {
    const ran = runNests(program, { given, symbols: new Map() });
    return ran.ok ? ran.value[0] : undefined;
  } catch (error) {
    if (!(error instanceof InternalError)) throw error;
    return undefined;
  }
}

describe.each([
  ["an epilogue", epilogue, ["under a guard", "another place", "covers", "two places", "repeats"]],
  [
    "inlined",
    inlined,
    ["is padded", "writes a part", "is a reduction", "covers a part", "fill values"],
  ],
] as const)("%s", (_, group, reasons) => {
  it("computes what the two statements compute, or says why it may not", () => {
    const seen = new Map<string, number>();
    let composed = 0;
    for (let seed = 0; seed < 800; seed++) {
      const rng = new Rng(seed);
      const text = randomPair(rng);
      const program = parse(text);
      const analysed = analyseProgram(program);
      const given = new Map([
        ["x", randomRef("f32", [6, 6], rng)],
        ["v", randomRef("f32", [6], rng)],
      ]);
      const expected = run(program, given);
      if (!expected) continue;
      const found = composeGroup(analysed, group);
      if (found.kind === "refused") {
        for (const reason of reasons.filter((r) => found.reason.includes(r))) {
          seen.set(reason, (seen.get(reason) ?? 0) + 1);
        }
        continue;
      }
      composed++;
      const actual = run(applyGroups(analysed, [group]), given);
      expect(actual, text).toEqual(expected);
    }
    expect(composed).toBeGreaterThan(50);
    for (const reason of reasons) expect([reason, seen.get(reason) ?? 0]).not.toEqual([reason, 0]);
  });
});
