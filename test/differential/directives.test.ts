/**
 * Every directive against the meaning of the statements: random schedules of random regions. What
 * legality accepts is lowered and must compute what the statements compute, in the program interpreter
 * and as WebAssembly; each directive has to occur among the accepted, often. What is refused with a
 * witness must be right about it: two iterations of the region that touch one element, one of them
 * writing, in the order of the statements.
 */
import { describe, expect, it } from "vitest";
import { lowerRegion } from "../../src/lower/lower-region.ts";
import type { Region, Statement } from "../../src/region/nest.ts";
import { parseRegion } from "../../src/region/nest-reader.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Directive, Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule, printSchedule } from "../../src/schedule/directive-text.ts";
import { checkSchedule, decideSchedule } from "../../src/schedule/legality/legality.ts";
import { blockedLayout } from "../../src/schedule/states/blocked-layout.ts";
import type { Condition } from "../../src/semantics/condition.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { type Diagnostic, formatDiagnostic } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { checkLowering } from "./check-lowering.ts";

const target = targets.get("wasm")!;

function regionOf(statements: string): Region {
  const parsed = parseRegion(`region r group r anchor S0 inlined () epilogue () {
    symbol N in 3..9
    input x : f32[N, 10] weight w : f32[10, 12] input b : f32[12]
    local t : f32[N, 12] output y : f32[N, 12]
    ${statements} }`);
  if (parsed.ok) return parsed.value;
  throw new Error(parsed.diagnostics.map(formatDiagnostic).join("\n"));
}

/** Makes t: a product, a window with padding, a map, a scan, something that reads its operand twice. */
const producers = [
  "{i in N, j in 12, reduce k in 10} { t[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) }",
  "{i in N, j in 12, reduce k in 10} { t[i, j] = reduce<max, f32, exact>(add(x[i, k], w[k, j])) finish (mul(_0, x[i, 3])) }",
  "{i in N, j in 12, reduce k in 3} { t[i, j] = reduce<sum, f32, reassociates>((x[i, j + k - 2] if j + k - 2 >= 0 && 11 - j - k >= 0 else 0)) }",
  "{i in N, j in 12} { t[i, j] = (mul((x[i, j - 1] if j - 1 >= 0 && 10 - j >= 0 else 2), b[j])) }",
  "{scan i in N, j in 12} { t[i, j] = (add((t[i - 1, j] if i - 1 >= 0 else 0), w[2, j])) }",
  "{i in N, j in 12, reduce k in 10} { t[i, j] = reduce<sum, f32, approximates>(mul(x[i, k], w[k, j])) }",
];

/** Makes y of t: an epilogue, a row's sum that is spread, a look at the neighbours. */
const readers = [
  "{i in N, j in 12} { y[i, j] = (relu(add(t[i, j], b[j]))) }",
  "{i in N, j in 12, reduce k in 12} { y[i, j] = reduce<sum, f32, reassociates>(mul(t[i, k], b[k])) finish (add(_0, b[j])) }",
  "{i in N, j in 12} { y[i, j] = (add((t[i - 1, j] if i - 1 >= 0 else 0), t[i, j])) }",
  "{i in N, j in 12} { y[i, j] = (add((t[i, j + 1] if 10 - j >= 0 else 1), x[i, 4])) }",
];

/** One statement that makes y itself. */
const alone = producers.map((p) => p.replaceAll("t[", "y["));

function randomRegion(rng: Rng): Region {
  if (rng.uniform() < 0.3) return regionOf(`statement S0 "" ${rng.pick(alone)}`);
  return regionOf(`statement S0 "" ${rng.pick(producers)} statement S1 "" ${rng.pick(readers)}`);
}

interface LoopNow {
  readonly name: string;
  readonly kind: string;
  readonly constant: boolean;
}

/** The loops of a statement while directives are drawn for it. */
class Draft {
  readonly directives: Directive[] = [];
  loops: LoopNow[];
  readonly statement: string;

  constructor({ name, loops }: Statement) {
    this.statement = name;
    this.loops = loops.map((l) => ({ ...l, constant: l.extent.terms.length === 0 }));
  }

  split(name: string, factor: number): void {
    const at = this.loops.findIndex((l) => l.name === name);
    const loop = this.loops[at]!;
    const [outer, inner] = [`${name}o`, `${name}i`];
    const { statement } = this;
    this.directives.push({ kind: "split", statement, loop: name, factor, outer, inner });
    const halves = [
      { ...loop, name: outer },
      { ...loop, name: inner, constant: true },
    ];
    this.loops = this.loops.toSpliced(at, 1, ...halves);
  }

  tile(names: readonly string[], factors: readonly number[]): void {
    const [outer, inner] = ["o", "i"].map((end) => names.map((n) => n + end)) as [
      string[],
      string[],
    ];
    const { statement } = this;
    this.directives.push({ kind: "tile", statement, loops: names, factors, outer, inner });
    const rest = this.loops.filter((l) => !names.includes(l.name));
    const tiled = names.map((n) => this.loops.find((l) => l.name === n)!);
    this.loops = [
      ...tiled.map((l) => ({ ...l, name: `${l.name}o` })),
      ...tiled.map((l) => ({ ...l, name: `${l.name}i`, constant: true })),
      ...rest,
    ];
  }

  reorder(order: readonly string[]): void {
    this.directives.push({ kind: "reorder", statement: this.statement, order });
    this.loops = order.map((name) => this.loops.find((l) => l.name === name)!);
  }

  mark(kind: "vectorize" | "unroll" | "parallelize", loop: string): void {
    this.directives.push({ kind, statement: this.statement, loop });
  }
}

function shuffle<T>(rng: Rng, items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ item, key: rng.uniform() }));
  return keyed.sort((a, b) => a.key - b.key).map((k) => k.item);
}

/** Splits and orders; with `shared`, the loops i and j of all statements are treated alike. */
function shape(draft: Draft, rng: Rng, shared: Rng | undefined): void {
  const common = shared ?? rng;
  const how = common.integer(0, 3);
  const factors = [common.integer(1, 5), common.integer(1, 5)];
  if (how === 1) draft.split("i", factors[0]!);
  if (how === 2) draft.split("j", factors[0]!);
  if (how === 3) draft.tile(["i", "j"], factors);
  const has = (name: string): boolean => draft.loops.some((l) => l.name === name);
  if (has("k") && rng.uniform() < 0.4) draft.split("k", rng.integer(1, 4));
  if (shared) {
    const first = draft.loops.filter((l) => !l.name.startsWith("k")).map((l) => l.name);
    const order = common.uniform() < 0.3 ? first.toReversed() : first;
    const rest = draft.loops.map((l) => l.name).filter((n) => !order.includes(n));
    draft.reorder([...order, ...rest]);
  } else if (rng.uniform() < 0.6)
    draft.reorder(
      shuffle(
        rng,
        draft.loops.map((l) => l.name),
      ),
    );
}

function mark(draft: Draft, rng: Rng, free: readonly LoopNow[]): void {
  const lane = free.findLast((l) => l.constant);
  if (lane && rng.uniform() < 0.4) draft.mark("vectorize", lane.name);
  for (const loop of free) {
    if (loop !== lane && loop.constant && rng.uniform() < 0.2) draft.mark("unroll", loop.name);
  }
}

function randomSchedule(region: Region, rng: Rng): Schedule {
  const drafts = region.statements.map((s) => new Draft(s));
  const fuses = drafts.length > 1 && rng.uniform() < 0.8;
  const seed = rng.bits();
  for (const draft of drafts) shape(draft, rng, fuses ? new Rng(seed) : undefined);
  const [first, second] = drafts as [Draft, Draft | undefined];
  const depth = fuses ? rng.integer(1, 2) : 0;
  const parallel = rng.uniform() < 0.4;
  for (const draft of drafts) {
    if (parallel) draft.mark("parallelize", draft.loops[0]!.name);
    mark(draft, rng, draft.loops.slice(Math.max(depth, parallel ? 1 : 0)));
  }
  const directives = drafts.flatMap((d) => d.directives);
  if (fuses) {
    const [guest, host] = rng.uniform() < 0.5 ? [first, second!] : [second!, first];
    const at = host.loops[depth - 1]!.name;
    directives.push({ kind: "fuse", statement: guest.statement, into: host.statement, at });
    if (rng.uniform() < 0.8) {
      const held = first.loops[rng.integer(0, depth - 1)]!.name;
      const scope = rng.pick(["local", "local", "shared", "register"] as const);
      directives.push({ kind: "place", tensor: "t", scope, statement: "S0", at: held });
    }
  }
  if (rng.uniform() < 0.35) {
    const draft = rng.pick(drafts);
    const tensor = rng.pick(["x", "b", "t", "w"].filter((name) => region.tensors.has(name)));
    const at = rng.pick(draft.loops).name;
    const { statement } = draft;
    directives.push({ kind: "stage", tensor, scope: "local", statement, at, depth: 1 });
  }
  if (rng.uniform() < 0.35) {
    const layout = blockedLayout(
      region.tensors.get("w")!.shape,
      rng.integer(0, 1),
      rng.integer(2, 5),
    );
    directives.push({ kind: "layout", tensor: "w", layout });
  }
  return { region: "r", target: "wasm", directives };
}

const instance =
  /^(\w+)\[([^\]]*)\] must run before (\w+)\[([^\]]*)\](?: \(with ([^)]*)\))?: (.*?) (\w+)\[([^\]]*)\]/;

function numbersOf(text: string): Map<string, number> {
  const pairs = text.split(", ").filter((p) => p !== "");
  return new Map(pairs.map((p) => [p.split(" = ")[0]!, Number(p.split(" = ")[1])]));
}

/** Throws unless the refusal names two instances in order that touch the element, one writing. */
function checkWitness(region: Region, { message }: Diagnostic): void {
  const found = instance.exec(message);
  if (!found) throw new Error(`no witness: ${message}`);
  const [, from, fromAt, to, toAt, params, , tensor, element] = found;
  const symbols = numbersOf(params ?? "N = 3");
  const sides = [from!, to!].map((name, i) => {
    const position = region.statements.findIndex((s) => s.name === name);
    const statement = region.statements[position]!;
    const own = numbersOf([fromAt!, toAt!][i]!);
    const at = new Map([...symbols, ...own]);
    for (const { name: loop, extent } of statement.loops) {
      const value = at.get(loop)!;
      expect(value >= 0 && value < evaluate(extent, at), `${loop} of ${message}`).toBe(true);
    }
    expect(
      statement.guard.every((c) => holds(c, at)),
      message,
    ).toBe(true);
    const place = (index: Statement["writes"][number]["index"]) =>
      index.map((e) => evaluate(e, at)).join(", ");
    const reads = [...statement.reads, ...statement.finishReads].filter(
      (a) => a.tensor === tensor && a.guard.every((c) => holds(c, at)),
    );
    const updates = statement.reduction !== undefined;
    const writes = statement.writes.filter((a) => a.tensor === tensor);
    return {
      rank: [position, ...statement.loops.map((l) => at.get(l.name)!)],
      reads: reads.map((a) => place(a.index)).includes(element!),
      writes: writes.map((a) => place(a.index)).includes(element!),
      updates,
    };
  });
  const [a, b] = sides as [(typeof sides)[0], (typeof sides)[0]];
  expect((a.writes && (b.reads || b.writes)) || (a.reads && b.writes), message).toBe(true);
  const differs = a.rank.findIndex((r, i) => r !== b.rank[i]);
  expect(differs >= 0 && a.rank[differs]! < b.rank[differs]!, message).toBe(true);
}

function holds(c: Condition, at: ReadonlyMap<string, number>): boolean {
  const value = evaluate(c.expr, at);
  return c.kind === "zero" ? value === 0 : value >= 0;
}

const varyingRegister = /(EMT001).*(?:varying index|lanes) of register buffer/;

describe("random schedules", () => {
  it("are refused with a true witness, or compute what the statements compute", () => {
    const accepted = new Map<string, number>();
    const refused = new Map<string, number>();
    let witnesses = 0;
    for (let seed = 0; seed < 160; seed++) {
      const rng = new Rng(seed);
      const region = randomRegion(rng);
      const schedule = randomSchedule(region, rng);
      const applied = applySchedule(region, schedule);
      const decide = seed % 8 === 0 ? checkSchedule : decideSchedule;
      const checked = applied.ok ? decide(applied.value) : applied;
      let code: string | undefined;
      if (!checked.ok) {
        const [fault] = checked.diagnostics as [Diagnostic];
        code = fault.code;
        if (fault.code === "SCH016") {
          checkWitness(region, fault);
          witnesses++;
        }
      } else {
        try {
          code = checkLowering(region, schedule, rng, target);
        } catch (error) {
          // A tile in registers whose elements are not named one by one: refused by the emitter.
          code = varyingRegister.exec((error as Error).message)?.[1];
          if (code !== undefined) continue;
          throw new Error(`seed ${seed}: ${(error as Error).message}\n${printSchedule(schedule)}`);
        }
      }
      const kinds = new Set(code === undefined ? schedule.directives.map((d) => d.kind) : []);
      for (const kind of kinds) accepted.set(kind, (accepted.get(kind) ?? 0) + 1);
      if (code !== undefined) refused.set(code, (refused.get(code) ?? 0) + 1);
    }
    const kinds: readonly Directive["kind"][] = [
      ...(["split", "tile", "reorder", "vectorize", "unroll", "parallelize"] as const),
      ...(["fuse", "place", "stage", "layout"] as const),
    ];
    const seen = JSON.stringify({ accepted: [...accepted], refused: [...refused], witnesses });
    for (const kind of kinds)
      expect(accepted.get(kind) ?? 0, `${kind}: ${seen}`).toBeGreaterThan(4);
    expect(witnesses, seen).toBeGreaterThan(10);
  });
});

/** y[s, i] of the step before, one element further on. */
const stencil = `statement S0 "" {scan i in N, j in 12} {
  y[i, j] = (add((y[i - 1, j + 1] if i - 1 >= 0 && 10 - j >= 0 else 0), w[3, j])) }`;
const strict = `statement S0 "" {i in N, j in 12, reduce k in 10} {
  y[i, j] = reduce<sum, f32, approximates>(mul(x[i, k], w[k, j])) }`;
const gathered = `statement S0 "" {i in N, j in 12} { t[i, j] = (mul(x[i, 0], b[j])) }
  statement S1 "" {i in N, j in 12} { y[i, j] = (add(t[i, j], (t[i + 1, j] if N - i - 2 >= 0 else 0))) }`;
const behind = gathered.replace("t[i + 1, j] if N - i - 2 >= 0", "t[i - 1, j] if i - 1 >= 0");

describe("a copy of what the same kernel writes", () => {
  it.each(["", "parallelize S0:i parallelize S1:i"])("is made behind its writer: %s", (threads) => {
    const text = `fuse S1 into S0:i stage "t" in local at S1:j depth 1 ${threads}`;
    const schedule = parseSchedule(`schedule "r" for "wasm" { ${text} }`);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const makers = producers.map((p) => `statement S0 "" ${p} statement S1 "" ${readers[0]}`);
    for (const [seed, makes] of makers.entries()) {
      if (threads !== "" && makes.includes("scan")) continue;
      const found = checkLowering(regionOf(makes), schedule.value, new Rng(seed), target);
      expect(found, makes).toBeUndefined();
    }
  });
});

describe("illegal directives", () => {
  it.each([
    ["split", strict, "split S0:k by 4 -> ko ki reorder S0:(i, j, ki, ko)"],
    ["tile", stencil, "tile S0:(i, j) by (2, 3) -> (io, jo) (ii, ji)"],
    ["reorder", stencil, "reorder S0:(j, i)"],
    ["vectorize", strict, "split S0:k by 4 -> ko ki vectorize S0:ki"],
    ["unroll", stencil.replace("scan i", "i").replace("in N", "in 3"), "unroll S0:i"],
    ["parallelize", stencil, "parallelize S0:i"],
    ["parallelize", stencil, "parallelize S0:j"],
    ["fuse", gathered, "fuse S1 into S0:i"],
    ["fuse", gathered, "fuse S0 into S1:j"],
    ["fuse", behind, "fuse S1 into S0:i parallelize S0:i parallelize S1:i"],
    ["place", behind, 'fuse S1 into S0:i place "t" in local at S0:i'],
    ["place", behind, 'place "t" in local at S0:i'],
    ["stage", behind, 'fuse S1 into S0:i stage "t" in local at S1:i depth 1'],
    ["vectorize", stencil.replace("in N", "in 3"), "vectorize S0:i"],
  ])("%s is refused with the two iterations and their element: %#", (_, statements, directives) => {
    const region = regionOf(statements);
    const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const applied = applySchedule(region, schedule.value);
    const checked = applied.ok ? checkSchedule(applied.value) : applied;
    if (checked.ok) throw new Error("it is taken for legal");
    const [fault] = checked.diagnostics as [Diagnostic];
    expect(fault.code, fault.message).toBe("SCH016");
    checkWitness(region, fault);
    expect(fault.help).toBeDefined();
  });

  it.each([
    ["stage", gathered, 'fuse S1 into S0:i stage "t" in local at S1:i depth 1', "SCH016"],
    ["stage", strict, 'stage "x" in local at S0:k depth 1', "SCH018"],
    ["stage", strict, 'stage "x" in local at S0:i depth 0', "SCH003"],
    ["layout", strict, 'layout "z" [4] holds [p0] at [l0]', "SCH011"],
    ["layout", strict, 'layout "w" [10, 12] holds [p1, p0] at [l0, l1]', "SCH019"],
    ["layout", strict, 'layout "x" [12, 10] holds [p1, p0] at [l1, l0]', "SCH019"],
  ])("%s is refused where it has no dependence to break: %#", (_, statements, directives, code) => {
    const region = regionOf(statements);
    const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const applied = applySchedule(region, schedule.value);
    const checked = applied.ok ? checkSchedule(applied.value) : applied;
    const found = checked.ok
      ? checkLowering(region, schedule.value, new Rng(1), target)
      : checked.diagnostics[0]!.code;
    expect(found).toBe(code);
  });
});

describe("directives that lowering carries out by others", () => {
  const product = producers[0]!;
  const two = `statement S0 "" ${product} statement S1 "" ${readers[0]!}`;
  it.each([
    ["interchange", two, "interchange S0:i with j"],
    ["interchange", two, "interchange S0:j with k unroll S0:j"],
    ["jam", two, "jam S0:i by 2 -> i0 i1"],
    ["jam", two, "jam S0:j by 4 -> j0 j1 jam S0:i by 3 -> i0 i1 vectorize S1:j"],
    ["jam", two, "jam S1:i by 2 -> i0 i1 split S1:j by 4 -> j0 j1 vectorize S1:j1"],
    ["jam", stencil, "jam S0:j by 3 -> j0 j1"],
    ["fission", two, "fuse S1 into S0:j fission S0:j"],
    ["fission", two, "fuse S1 into S0:j fission S0:i"],
  ])("%s computes what the statements compute: %#", (_, statements, directives) => {
    const region = regionOf(statements);
    const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const applied = applySchedule(region, schedule.value);
    expect(applied.ok && checkSchedule(applied.value).ok).toBe(true);
    for (let seed = 0; seed < 4; seed++) {
      expect(checkLowering(region, schedule.value, new Rng(seed), target)).toBe(undefined);
    }
  });

  it.each([
    ["skew", stencil, "skew S0:j by i times 1"],
    ["shift", gathered, "fuse S1 into S0:i shift S1:i by 1"],
    ["diamond", stencil, "diamond S0:i with j by 4 slope 1 -> w d"],
    ["pipeline", gathered, "fuse S1 into S0:i pipeline i (S0 0, S1 2)"],
    ["split-reduction", two, "split-reduction S0:k by 4 -> k0 k1"],
    ["fold", behind, 'fuse S1 into S0:i fold "t" axis 0 to 2'],
    ["overlap", behind, "overlap S0 into S1:(i) by (2) -> (i0) (i1)"],
  ])("%s is refused by its name", (kind, statements, directives) => {
    const region = regionOf(statements);
    const schedule = parseSchedule(`schedule "r" for "wasm" { ${directives} }`);
    if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
    const applied = applySchedule(region, schedule.value);
    const checked = applied.ok ? checkSchedule(applied.value) : applied;
    if (!checked.ok) throw new Error(formatDiagnostic(checked.diagnostics[0]!));
    const lowered = lowerRegion(checked.value, target);
    const fault = lowered.ok ? undefined : lowered.diagnostics[0]!;
    expect(fault).toMatchObject({ code: "SCH033", message: expect.stringContaining(kind) });
  });
});
