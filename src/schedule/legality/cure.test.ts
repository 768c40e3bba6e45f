/** The change that a refusal names: made word by word, it is accepted; no smaller one would be. */
import { describe, expect, it } from "vitest";
import { areCompatible, type Edit, editDirectives, editsOf } from "../../affine/tree/edits.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import type { Diagnostic } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { applySchedule } from "../apply.ts";
import type { Directive } from "../directive.ts";
import { parseSchedule, printDirective } from "../directive-text.ts";
import { checkSchedule, decideSchedule } from "./legality.ts";

function regionOf(body: string): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    input x : f32[6, 16] local t : f32[6, 16] output y : f32[6, 16] ${body} }`);
  invariant(parsed.ok, () => JSON.stringify(parsed));
  return parsed.value;
}

const running = regionOf(`statement S0 "" {i0 in 6, scan i1 in 16} {
  y[i0, i1] = (add((y[i0, i1 - 1] if i1 - 1 >= 0 else 0), x[i0, i1]))
}`);
const slanted = regionOf(`statement S0 "" {scan i0 in 6, i1 in 16} {
  y[i0, i1] = (add((y[i0 - 1, i1 + 1] if i0 - 1 >= 0 && 14 - i1 >= 0 else 0), x[i0, i1]))
}`);
const ahead = regionOf(`statement S0 "" {i0 in 6, i1 in 16} { t[i0, i1] = (x[i0, i1]) }
statement S1 "" {i0 in 6, i1 in 16} {
  y[i0, i1] = (add((t[i0 + 1, i1] if 4 - i0 >= 0 else 0), t[i0, i1]))
}`);

const regions = { running, slanted, ahead };

function parse(lines: readonly string[]): readonly Directive[] {
  const parsed = parseSchedule(`schedule "R" for "wasm" { ${lines.join("\n")} }`);
  invariant(parsed.ok, () => lines.join("\n"));
  return parsed.value.directives;
}

/** Undefined when legal. */
function refusal(
  region: Region,
  directives: readonly Directive[],
  decide = checkSchedule,
): Diagnostic | undefined {
  const applied = applySchedule(region, { region: "R", target: "wasm", directives });
  const checked = applied.ok ? decide(applied.value) : applied;
  return checked.ok ? undefined : checked.diagnostics[0];
}

/** Does what the help says. */
function follow(lines: readonly string[], help: string): readonly string[] {
  const out = lines.slice();
  const place = (text: string): number => {
    const numbered = / \(directive (\d+)\)$/.exec(text);
    const at = numbered ? Number(numbered[1]) - 1 : out.indexOf(text);
    invariant(at >= 0, () => `${text} is not in ${out.join("; ")}`);
    return at;
  };
  for (const step of help.replace(/ \(not all.*$/, "").split(", and ")) {
    const [, gone] = /^leave out (.*)$/.exec(step) ?? [];
    const [, made, how, old] = /^(.*?) (instead of|before|behind) (.*)$/.exec(step) ?? [];
    if (gone !== undefined) out.splice(place(gone), 1);
    else if (how === "instead of") out.splice(place(old!), 1, made!);
    else out.splice(place(old!) + (how === "behind" ? 1 : 0), 0, made!);
  }
  return out;
}

function textOf(directives: readonly Directive[]): readonly string[] {
  return directives.map(printDirective);
}

describe("the change in a refusal", () => {
  it.each([
    ["running", "split S0:i1 by 4 -> a b; interchange S0:a with b; parallelize S0:a", 2],
    [
      "running",
      "split S0:i1 by 4 -> a b; interchange S0:a with b; parallelize S0:a; vectorize S0:b",
      3,
    ],
    [
      "running",
      "split S0:i1 by 4 -> a b; skew S0:a by b times 1; interchange S0:a with b; parallelize S0:a",
      3,
    ],
    ["running", "split S0:i1 by 4 -> a b; reorder S0:(b, a, i0); parallelize S0:a; unroll S0:b", 2],
    ["slanted", "interchange S0:i0 with i1; vectorize S0:i0", 1],
    ["ahead", "fuse S1 into S0:i0; parallelize S0:i0; parallelize S1:i0", 1],
  ] as const)("%s: %s", (name, text, size) => {
    const region = regions[name];
    const lines = textOf(parse(text.split("; ")));
    const refused = refusal(region, parse(lines))!;
    expect(refused.code).toBe("SCH016");
    const help = refused.help!;
    expect(refusal(region, parse(follow(lines, help))), help).toBeUndefined();
    expect(help.split(", and ").length, help).toBe(size);
  });

  it("is there for any refusal, is accepted, and is the smallest", () => {
    const rng = new Rng(3);
    let several = 0;
    for (let trial = 0; trial < 60; trial++) {
      const region = rng.pick(Object.values(regions));
      const directives = drawSchedule(rng, region, rng.integer(2, 5));
      const refused = refusal(region, directives);
      if (refused?.code !== "SCH016") continue;
      const help = refused.help!;
      const followed = follow(textOf(directives), help);
      expect(refusal(region, parse(followed)), `${textOf(directives).join("; ")}: ${help}`).toBe(
        undefined,
      );
      if (help.includes("(not all")) continue;
      const size = help.split(", and ").length;
      if (size > 1) several++;
      for (const set of size === 2 ? singleEdits(directives) : pairsOfEdits(directives, size)) {
        const edited = editDirectives<Directive>(directives, set);
        const better = refusal(region, edited, decideSchedule) === undefined;
        expect(better, `${textOf(edited).join("; ")} against ${help}`).toBe(false);
      }
    }
    expect(several).toBeGreaterThan(5);
  });
});

function singleEdits(directives: readonly Directive[]): readonly (readonly Edit[])[] {
  return [...editsOf(directives)].map((e) => [e]);
}

/** What is smaller than three edits; nothing for one. */
function pairsOfEdits(
  directives: readonly Directive[],
  size: number,
): readonly (readonly Edit[])[] {
  if (size < 3) return [];
  const small = [...editsOf(directives)].filter((e) => e.size === 1).slice(0, 12);
  const pairs = small.flatMap((a, i) => small.slice(i + 1).map((b) => [a, b] as const));
  return [...singleEdits(directives), ...pairs.filter(([a, b]) => areCompatible(a, b))];
}

/** Directives of which each alone has a place behind those before it. */
function drawSchedule(rng: Rng, region: Region, length: number): readonly Directive[] {
  let out: readonly Directive[] = [];
  const loops = new Map(region.statements.map((s) => [s.name, s.loops.map((l) => l.name)]));
  for (let tries = 0; tries < 20 && out.length < length; tries++) {
    const statement = rng.pick([...loops.keys()]);
    const names = loops.get(statement)!;
    const [loop, other] = [rng.pick(names), rng.pick(names)];
    const [outer, inner] = [`${loop}o`, `${loop}n`];
    const text = rng.pick([
      `split ${statement}:${loop} by 2 -> ${outer} ${inner}`,
      `interchange ${statement}:${loop} with ${other}`,
      `parallelize ${statement}:${loop}`,
      `vectorize ${statement}:${loop}`,
      `skew ${statement}:${loop} by ${other} times 1`,
      `fuse S1 into S0:${loops.get("S0")![0]}`,
    ]);
    const next = [...out, ...parse([text])];
    const applied = applySchedule(region, { region: "R", target: "wasm", directives: next });
    if (!applied.ok) continue;
    out = next;
    if (text.startsWith("split")) {
      loops.set(
        statement,
        names.flatMap((n) => (n === loop ? [outer, inner] : [n])),
      );
    }
  }
  return out;
}
