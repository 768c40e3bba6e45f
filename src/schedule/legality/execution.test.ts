/**
 * Legality and the schedule tree against plain execution: nested loops over the scheduled loops, as
 * lowering spells them, give every instance with its time; all pairs of instances decide.
 */
import { describe, expect, it } from "vitest";
import { executeTree, type Instance, printTree } from "../../affine/index.ts";
import type { Region, Statement } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import { Rng } from "../../support/rng.ts";
import { applySchedule } from "../apply.ts";
import type { Directive } from "../directive.ts";
import { parseSchedule, printSchedule } from "../directive-text.ts";
import type { ScheduledLoop, ScheduledRegion, ScheduledStatement } from "../scheduled-region.ts";
import { formatPlace, parseAt, placeOf } from "../tree/place.ts";
import { scheduleTree } from "../tree/tree.ts";
import { decideSchedule } from "./legality.ts";

interface Visit extends Instance {
  readonly kernel: number;
  /** Values of grid loops; of outer and reduce loops: instances with equal ones are live at once. */
  readonly grid: string;
  readonly slot: string;
}

interface Walk {
  readonly visits: Visit[];
  readonly kernel: number;
  readonly region: ScheduledRegion;
}

function runs(region: ScheduledRegion): readonly Visit[] {
  const guests = new Set(region.fused.map((f) => f.statement));
  const roots = region.statements.filter((s) => !guests.has(s.statement.name));
  return roots.flatMap((root, kernel) => {
    const walk: Walk = { visits: [], kernel, region };
    runAt(walk, root, []);
    return walk.visits;
  });
}

function partsOf({ loops }: ScheduledStatement): {
  outer: ScheduledLoop[];
  inner: ScheduledLoop[];
} {
  const first = loops.findIndex((l) => l.kind === "reduce");
  const tile = loops.filter(
    (l, at) =>
      l.kind === "space" &&
      l.mode !== "grid" &&
      (l.mode !== "serial" || (first >= 0 && at > first)),
  );
  const reduce = loops.filter((l) => l.kind === "reduce");
  const lanesLast = tile.toSorted(
    (a, b) => Number(a.mode === "vector") - Number(b.mode === "vector"),
  );
  return {
    outer: loops.filter((l) => !reduce.includes(l) && !tile.includes(l)),
    inner: [...reduce, ...lanesLast],
  };
}

/** Everything of a statement and its guests inside the outer loops with `values`. */
function runAt(walk: Walk, s: ScheduledStatement, values: readonly number[]): void {
  const { region } = walk;
  const order = region.region.statements.map((x) => x.name);
  const here = region.fused.filter((f) => f.into === s.statement.name && f.depth === values.length);
  const runGuests = (before: boolean): void => {
    for (const f of here) {
      const isBefore = order.indexOf(f.statement) < order.indexOf(f.into);
      const guest = region.statements.find((x) => x.statement.name === f.statement)!;
      if (isBefore === before) runAt(walk, guest, values);
    }
  };
  const { outer } = partsOf(s);
  runGuests(true);
  const loop = outer[values.length];
  if (loop) {
    for (let i = 0; i < evaluate(loop.extent, new Map()); i++) runAt(walk, s, [...values, i]);
  } else {
    runInner(walk, s, values);
  }
  runGuests(false);
}

function runInner(walk: Walk, s: ScheduledStatement, values: readonly number[]): void {
  const { outer, inner } = partsOf(s);
  const loop = inner[values.length - outer.length];
  if (loop) {
    for (let i = 0; i < evaluate(loop.extent, new Map()); i++) runInner(walk, s, [...values, i]);
    return;
  }
  const all = [...outer, ...inner];
  const bound = new Map(all.map((l, i) => [l.name, values[i]!]));
  if (s.ragged.some((c) => evaluate(c.expr, bound) < 0)) return;
  const point = Object.fromEntries([...s.index].map(([name, e]) => [name, evaluate(e, bound)]));
  const pick = (keep: (l: ScheduledLoop) => boolean): string =>
    all.flatMap((l, i) => (keep(l) ? [values[i]] : [])).join();
  walk.visits.push({
    statement: s.statement.name,
    point,
    kernel: walk.kernel,
    grid: pick((l) => l.mode === "grid"),
    slot: pick((l) => outer.includes(l) || (l.kind === "reduce" && l.mode !== "vector")),
  });
}

/** Elements that an instance reads and writes. */
function touched(statement: Statement, point: Instance["point"]) {
  const at = new Map(Object.entries(point));
  const name = (a: { tensor: string; index: Statement["reads"][0]["index"] }): string =>
    `${a.tensor}[${a.index.map((e) => evaluate(e, at)).join()}]`;
  const updates = statement.loops.some((l) => l.kind === "reduce");
  const writes = statement.writes.map(name);
  return { reads: [...statement.reads.map(name), ...(updates ? writes : [])], writes, updates };
}

/** Whether every two instances that touch one element stay in their order. */
function isLegalByPairs(region: Region, visits: readonly Visit[]): boolean {
  const rank = (v: Visit): number[] => {
    const at = region.statements.findIndex((s) => s.name === v.statement);
    return [at, ...region.statements[at]!.loops.map((l) => v.point[l.name]!)];
  };
  const data = visits.map((v, when) => {
    const statement = region.statements.find((s) => s.name === v.statement)!;
    return { v, when, rank: rank(v), ...touched(statement, v.point) };
  });
  for (const a of data) {
    for (const b of data) {
      if (!isBefore(a.rank, b.rank)) continue;
      const share = (x: readonly string[], y: readonly string[]): boolean =>
        x.some((e) => y.includes(e));
      const clash =
        share(a.writes, b.writes) || share(a.writes, b.reads) || share(a.reads, b.writes);
      if (!clash) continue;
      const { v, when } = a;
      const sameKernel = v.kernel === b.v.kernel;
      if (sameKernel && v.grid !== b.v.grid) return false;
      const same = v.statement === b.v.statement;
      if (same && a.updates) continue;
      if (when > b.when || (same && v.slot === b.v.slot)) return false;
    }
  }
  return true;
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((v, i) => v !== b[i]);
  return at >= 0 && at < b.length && a[at]! < b[at]!;
}

function randomRegion(rng: Rng): Region {
  const offset = (name: string): string => `${name} + ${rng.integer(-1, 1)}`;
  const kind = rng.uniform() < 0.5 ? "scan " : "";
  const shape = rng.integer(0, 3);
  const first =
    shape === 0
      ? `{${kind}i in 5, j in 4} { t[i, j] = (${kind ? `t[i - 1, ${offset("j")}]` : "x[i, j]"}) }`
      : shape === 1
        ? "{i in 5, j in 4, reduce k in 3} { t[i, j] = reduce<sum, f32, reassociates>(x[i, k]) }"
        : shape === 2
          ? "{i in 5, j in 4} { t[i, j] = (x[j, i]) }"
          : `{i in 5, j in 4} { t[i, j] = (t[${offset("i")}, ${offset("j")}]) }`;
  const second = rng.pick([
    `{i in 5, j in 4} { y[i, j] = (t[${offset("i")}, ${offset("j")}]) }`,
    `{i in 5, j in 4} { y[i, j] = (t[${offset("i")}, j]) }`,
    "{i in 5, j in 4, reduce k in 4} { y[i, j] = reduce<sum, f32, reassociates>(t[i, k]) }",
  ]);
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    input x : f32[9, 9] local t : f32[9, 9] output y : f32[9, 9]
    statement S0 "" ${first} ${rng.uniform() < 0.3 ? "" : `statement S1 "" ${second}`} }`);
  invariant(parsed.ok, () => "the region does not parse");
  return parsed.value;
}

function randomDirectives(rng: Rng, region: Region): readonly Directive[] {
  const out: Directive[] = [];
  const factor = rng.integer(2, 3);
  const swap = rng.uniform() < 0.4;
  const splits = rng.uniform() < 0.6;
  const marks = [0, 1].map(() => rng.pick(["none", "none", "parallelize", "unroll", "vectorize"]));
  for (const { name: statement, loops } of region.statements) {
    let names = loops.map((l) => l.name);
    if (splits) {
      out.push({ kind: "split", statement, loop: "i", factor, outer: "i0", inner: "i1" });
      names = names.flatMap((l) => (l === "i" ? ["i0", "i1"] : [l]));
    }
    if (swap) out.push({ kind: "reorder", statement, order: names.toReversed() });
    if (rng.uniform() < 0.2)
      out.push({ kind: "reorder", statement, order: [...names.slice(1), names[0]!] });
    marks.forEach((kind, i) => {
      const loop = i === 0 ? names[0]! : "j";
      if (kind !== "none") out.push({ kind: kind as "unroll", statement, loop });
    });
  }
  if (region.statements.length > 1 && rng.uniform() < 0.7) {
    out.push({ kind: "fuse", statement: "S1", into: "S0", at: swap || !splits ? "j" : "i0" });
  }
  return out;
}

function sorted(instances: readonly Instance[]): readonly string[] {
  return instances.map(textOf).sort();
}

function textOf({ statement, point }: Instance): string {
  const entries = Object.entries(point).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${statement} ${entries.map(([k, v]) => `${k}=${v}`).join(" ")}`;
}

describe("random schedules of one and two statements", () => {
  it("are legal exactly when all pairs of instances stay in order, and run as their tree says", () => {
    const seen = { legal: 0, illegal: 0 };
    for (let seed = 0; seed < 250; seed++) {
      const rng = new Rng(seed * 7 + 3);
      const region = randomRegion(rng);
      const schedule = { region: "R", target: "wasm", directives: randomDirectives(rng, region) };
      const applied = applySchedule(region, schedule);
      if (!applied.ok) continue;
      const tree = scheduleTree(applied.value);
      const checked = decideSchedule(applied.value);
      if (!tree.ok) {
        expect(checked.ok).toBe(false);
        continue;
      }
      const visits = runs(applied.value);
      const text = printSchedule(schedule);
      const order = executeTree(tree.value, visits.toReversed());
      expect(order.map(textOf), text).toEqual(visits.map(textOf));
      const plain = runs({ ...applied.value, ...withoutDirectives(region) });
      expect(sorted(visits), text).toEqual(sorted(plain));
      if (!checked.ok && checked.diagnostics[0]!.message.includes("do not share the grid"))
        continue;
      const legal = isLegalByPairs(region, visits);
      const why = checked.ok ? "legal" : checked.diagnostics[0]!.message;
      expect(checked.ok, `${text}${why}`).toBe(legal && !reducesOnThreads(applied.value));
      seen[checked.ok ? "legal" : "illegal"]++;
    }
    expect(Math.min(seen.legal, seen.illegal)).toBeGreaterThan(12);
  });
});

function reducesOnThreads(region: ScheduledRegion): boolean {
  return region.statements.some((s) =>
    s.loops.some((l) => l.kind === "reduce" && l.mode === "grid"),
  );
}

function withoutDirectives(region: Region): ScheduledRegion {
  const plain = applySchedule(region, { region: "R", target: "wasm", directives: [] });
  invariant(plain.ok, () => "the empty schedule applies");
  return plain.value;
}

describe("the tree in text", () => {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    input x : f32[9, 9] local t : f32[9, 9] output y : f32[9, 9]
    statement S0 "" {i in 6, j in 8, reduce k in 3} {
      t[i, j] = reduce<sum, f32, reassociates>(x[i, k])
    }
    statement S1 "" {i in 6, j in 8} { y[i, j] = (t[i, j]) } }`);
  invariant(parsed.ok, () => "the region does not parse");
  const schedule = parseSchedule(`schedule "R" for "wasm" {
    split S0:j by 4 -> j0 j1 reorder S0:(i, j0, k, j1) vectorize S0:j1
    parallelize S0:i parallelize S1:i fuse S1 into S0:i place "t" in local at S0:i }`);
  invariant(schedule.ok, () => "the schedule does not parse");
  const applied = applySchedule(parsed.value, schedule.value);
  invariant(applied.ok, () => "the schedule does not apply");

  it("has nothing after the closing brace of a schedule", () => {
    const text = printSchedule(schedule.value);
    expect(parseSchedule(text)).toEqual(schedule);
    for (const more of ["}", text, "hello"]) {
      expect(parseSchedule(text + more)).toMatchObject({
        ok: false,
        diagnostics: [{ code: "TXT001" }],
      });
    }
  });

  it("shows bands, sequences and marks", () => {
    const tree = scheduleTree(applied.value);
    expect(tree.ok && printTree(tree.value)).toMatchInlineSnapshot(`
      "domain "{ S0[i, j, k] : 0 <= i <= 5 and 0 <= j <= 7 and 0 <= k <= 2; S1[i, j] : 0 <= i <= 5 and 0 <= j <= 7 }"
        mark grid
          band permutable [i: S0 i, S1 i, coincident]
            mark placed "t" in local
              sequence
                filter S0
                  band permutable [j0: S0 floor((j)/4), coincident; k: S0 k, coincident]
                    mark vector
                      band permutable [j1: S0 -4*floor((j)/4) + j, coincident]
                        leaf
                filter S1
                  band permutable [j: S1 j, coincident]
                    leaf
      "
    `);
  });

  it("tells the place of an instance", () => {
    const place = placeOf(applied.value, "S0", { i: 2, j: 7, k: 1 });
    expect(place).toMatchObject({
      ok: true,
      value: {
        kernel: 0,
        loops: [
          { name: "i", mode: "grid", value: 2 },
          { name: "j0", mode: "serial", value: 1 },
          { name: "k", mode: "serial", value: 1 },
          { name: "j1", mode: "vector", value: 3 },
        ],
        time: [0, 0, 2, 0, 1, 0, 1, 0, 3, 0],
      },
    });
    expect(place.ok && formatPlace(place.value)).toMatchInlineSnapshot(`
      "device  0
      kernel  0
      block   2
      lane    3
      time    (0, 0, 2, 0, 1, 0, 1, 0, 3, 0)
      loops
        i = 2 (grid)
        j0 = 1
        k = 1
        j1 = 3 (vector)"
    `);
    const code = (statement: string, point: Record<string, number>): string | undefined => {
      const found = placeOf(applied.value, statement, point);
      return found.ok ? undefined : found.diagnostics[0]!.code;
    };
    expect(code("S9", {})).toBe("SCH001");
    expect(code("S0", { i: 2, j: 7 })).toBe("SCH002");
    expect(code("S0", { i: 2, j: 99, k: 0 })).toBe("SCH020");
  });

  it("reads which instance is meant", () => {
    const loops = ["i", "j"];
    expect(parseAt("a/b:S0[2, 7]")).toMatchObject({ value: { region: "a/b", statement: "S0" } });
    const point = (text: string): unknown => {
      const at = parseAt(text);
      return at.ok && at.value.point(loops);
    };
    expect(point("S0[j = 7, i = 2]")).toEqual({ i: 2, j: 7 });
    expect(point("S0[2, -7]")).toEqual({ i: 2, j: -7 });
    for (const text of ["S0", "S0[i]", "S0[1", "[1]", "S0[1.5]", "S0[9007199254740993, 1]"]) {
      expect(parseAt(text)).toMatchObject({ diagnostics: [{ code: "TXT001" }] });
    }
  });
});
