/**
 * The memory plan against a simulation: every byte of scratch remembers which tensor it holds, tasks
 * run in order, and a task must find its operands whole when it reads them.
 */
import { describe, expect, it } from "vitest";
import {
  type Affine,
  add,
  affine,
  checkStorage,
  type FilterNode,
  type Nest,
  type NestStatement,
  type ScheduleTree,
  within,
} from "../affine/index.ts";
import { ifThen, loadExpr, storeTo } from "../program/expr.ts";
import type { Buffer, Kernel, Program, Task } from "../program/program.ts";
import { constant, constantValue, variable } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { findLostValue, type Place } from "./check-reuse.ts";
import { capacityBytes, type InPlaceChoices, planMemory } from "./memory-plan.ts";

const target = targets.get("wasm")!;
const ranges = new Map([["N", { min: 1, max: 9 }]]);

interface Step {
  readonly reads: readonly string[];
  readonly write: string;
}

interface Drawn {
  readonly program: Program;
  readonly steps: readonly Step[];
  readonly inPlace: InPlaceChoices;
}

function kernelOf(name: string, { reads, write }: Step): Kernel {
  const loads = reads.map((buffer) => loadExpr(buffer, [0], { dtype: "f32", lanes: 1 }));
  // One load in a guard's branch, the others side by side: all of them count as uses.
  const body = [
    ...loads.slice(1).map((load) => storeTo(write, [1], load)),
    ifThen([], [storeTo(write, [0], loads[0]!)]),
  ];
  return {
    name,
    grid: {
      unit: "threads",
      axes: [{ name: "t", extent: constant(1) }],
      clusterSize: 1,
      resident: false,
    },
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: name,
  };
}

function launch(kernel: string): Task {
  return { kind: "launch", kernel, after: "previous", bindings: [], waits: [], signals: [] };
}

/** Tensors of random sizes, some seen through views; a step reads what earlier steps wrote. */
function draw(rng: Rng): Drawn {
  const common = { scope: "memory", dtype: "f32", lanes: 1 } as const;
  const buffers: Buffer[] = [
    { ...common, name: "x", kind: "input", shape: [variable("N")] },
    { ...common, name: "w", kind: "weight", shape: [constant(5)] },
    { ...common, name: "x2", kind: "input", dtype: "bool", shape: [constant(3)] },
    { ...common, name: "w2", kind: "weight", dtype: "i8", shape: [constant(7)] },
    { ...common, name: "s", kind: "state", dtype: "f16", shape: [constant(11)] },
    { ...common, name: "s2", kind: "state", shape: [constant(3)] },
    { ...common, name: "y", kind: "output", shape: [constant(1)] },
  ];
  const readable = ["x", "w"];
  const steps: Step[] = [];
  const inPlace = new Map<string, readonly string[]>();
  for (let i = 0; i < rng.integer(2, 14); i++) {
    const reads = Array.from({ length: rng.integer(1, 3) }, () => rng.pick(readable.slice(-6)));
    const write = `t${i}`;
    const extent = rng.uniform() < 0.3 ? variable("N") : constant(rng.integer(1, 40));
    buffers.push({ ...common, name: write, kind: "scratch", shape: [extent] });
    const owners = reads.map((r) => buffers.find((b) => b.name === r)!.viewOf ?? r);
    if (rng.uniform() < 0.6) inPlace.set(write, owners);
    readable.push(write);
    if (rng.uniform() < 0.4) {
      const view = { ...common, name: `v${i}`, kind: "scratch", shape: [extent] } as const;
      buffers.push({ ...view, viewOf: write });
      readable.push(view.name);
    }
    steps.push({ reads, write });
  }
  const kernels = steps.map((s, i) => kernelOf(`k${i}`, s));
  // Some tasks stand in a loop together: what one of them needs lives as long as the loop.
  const tasks: Task[] = [];
  for (let at = 0; at < kernels.length; ) {
    const many = rng.uniform() < 0.2 ? rng.integer(1, 3) : 1;
    const body = kernels.slice(at, at + many).map((k) => launch(k.name));
    at += body.length;
    if (many === 1) tasks.push(...body);
    else tasks.push({ kind: "repeat", variable: "r", count: constant(2), tables: [], body });
  }
  const program: Program = {
    name: "p",
    target: "wasm",
    parameters: [{ name: "N", min: 1, max: 9 }],
    requires: [],
    buffers,
    counters: [],
    kernels,
    tasks,
    states: [],
  };
  return { program, steps, inPlace };
}

/** Where the plan puts a buffer in scratch: the view's owner says it. */
function placeOf(planned: Program, name: string): { first: number; end: number } | undefined {
  const buffer = planned.buffers.find((b) => b.name === name)!;
  const owner = planned.buffers.find((b) => b.name === (buffer.viewOf ?? name))!;
  invariant(owner.viewOf === undefined, () => `${name} is a view of a view`);
  if (owner.kind !== "scratch" || owner.placement === undefined) return undefined;
  const first = constantValue(owner.placement.byteOffset)!;
  return { first, end: first + capacityBytes(buffer, ranges) };
}

/**
 * The steps as nests over the scratch tensors, four bytes an element: a step reads and writes in no
 * order, except that it reads an element of what it may overwrite before it writes there.
 */
function nestOf({ steps, program, inPlace }: Drawn, planned: Program): Nest {
  const statements: NestStatement[] = [];
  const root = (name: string): string =>
    program.buffers.find((b) => b.name === name)!.viewOf ?? name;
  const access = (name: string, kind: "read" | "write", buffer: string): FilterNode | undefined => {
    const place = placeOf(planned, buffer);
    if (!place) return undefined;
    const end = Math.ceil((place.end - place.first) / 4);
    const index = [affine("e")];
    const accesses = [{ kind, array: root(buffer), index }];
    statements.push({ name, dims: ["e"], domain: within(0, "e", end), accesses });
    return { kind: "filter", statements: [name], child: { kind: "leaf" } };
  };
  const looped = (parts: readonly (FilterNode | undefined)[]): readonly FilterNode[] => {
    const children = parts.filter((c) => c !== undefined);
    const names = children.flatMap((c) => c.statements);
    if (names.length === 0) return [];
    const values = new Map(names.map((n) => [n, affine("e")]));
    const members = [{ loop: "e", values, coincident: false }];
    const child: ScheduleTree = { kind: "sequence", children };
    return [
      {
        kind: "filter",
        statements: names,
        child: { kind: "band", members, permutable: false, child },
      },
    ];
  };
  const children = steps.flatMap(({ reads, write }, i): FilterNode[] => {
    const own = reads.map((r, n) => ({
      node: access(`k${i}.r${n}`, "read", r),
      over: inPlace.get(write)?.includes(root(r)) === true,
    }));
    const over = own.filter((r) => r.over).map((r) => r.node);
    const others = own.filter((r) => !r.over).flatMap((r) => looped([r.node]));
    const parts = [...others, ...looped([...over, access(`k${i}.w`, "write", write)])];
    const names = parts.flatMap((c) => c.statements);
    return names.length > 0
      ? [{ kind: "filter", statements: names, child: { kind: "set", children: parts } }]
      : [];
  });
  const tree: ScheduleTree = { kind: "sequence", children };
  return { statements, tree, given: new Set(), kept: new Set() };
}

/** The dependences that planned memory creates, judged by the library: "" or the clash in words. */
function judgeStorage(drawn: Drawn, planned: Program): string {
  const nest = nestOf(drawn, planned);
  const found = checkStorage({ nest, tree: nest.tree }, (_, access) => {
    const offset = placeOf(planned, access.array)!.first / 4;
    return { ...access, array: "scratch", index: [add(access.index[0] as Affine, offset)] };
  });
  if (found.kind === "clash") {
    const { array, overwriter } = found.clash;
    return `${array} is overwritten by ${overwriter?.statement}`;
  }
  return found.kind === "legal" ? "" : found.reason;
}

/** The places of a plan as the planner hands them to its judge. */
function placesOf({ buffers }: Program): readonly Place[] {
  const owned = buffers.filter((b) => b.kind === "scratch" && b.placement);
  return owned.map((owner) => {
    const over = buffers.filter((b) => b.viewOf === owner.name && !/^v/.test(b.name));
    const tenants = [owner, ...over].sort(
      (a, b) => Number(a.name.slice(1)) - Number(b.name.slice(1)),
    );
    const from = constantValue(owner.placement!.byteOffset)!;
    const size = Math.max(...tenants.map((b) => capacityBytes(b, ranges)));
    return { tenants, from, to: from + size };
  });
}

/** The first step that finds another tensor where its operand was, in words. */
function simulate({ steps, program, inPlace }: Drawn, planned: Program, bytes: number): string {
  const root = (name: string): string =>
    program.buffers.find((b) => b.name === name)!.viewOf ?? name;
  const held = new Array<string>(bytes).fill("nothing");
  for (const [i, { reads, write }] of steps.entries()) {
    const to = placeOf(planned, write);
    for (const read of reads) {
      const from = placeOf(planned, read);
      if (!from) continue;
      const lost = held.slice(from.first, from.end).find((h) => h !== root(read));
      if (lost !== undefined) return `step ${i} reads ${read} and finds ${lost}`;
      const meet = to !== undefined && to.first < from.end && from.first < to.end;
      const same = to !== undefined && to.first === from.first;
      if (meet && !(same && inPlace.get(write)?.includes(root(read)))) {
        return `step ${i} writes ${write} over ${read}`;
      }
    }
    if (to) held.fill(write, to.first, to.end);
  }
  return "";
}

describe("planMemory", () => {
  it("keeps every tensor whole until its last reader, through views, in place and in loops", () => {
    let shared = 0;
    for (let seed = 0; seed < 300; seed++) {
      const drawn = draw(new Rng(seed));
      const plan = planMemory(drawn.program, drawn.inPlace, target);
      invariant(plan.ok, () => "the plan fits");
      const { program, arenas, scratchLowerBound } = plan.value;
      expect(simulate(drawn, program, arenas.scratch), `seed ${seed}`).toBe("");
      expect(arenas.scratch).toBeLessThanOrEqual(1.1 * scratchLowerBound + target.alignmentBytes);
      const places = drawn.steps.map((s) => placeOf(program, s.write)!.first);
      shared += places.length - new Set(places).size;
    }
    expect(shared).toBeGreaterThan(300);
  });

  it("keeps the dependences that shared memory creates; a planted overlap is found", () => {
    const verdicts = { kept: 0, lost: 0 };
    for (let seed = 0; seed < 25; seed++) {
      const rng = new Rng(seed);
      const drawn = draw(rng);
      const plan = planMemory(drawn.program, drawn.inPlace, target);
      invariant(plan.ok, () => "the plan fits");
      const { program, arenas } = plan.value;
      expect(judgeStorage(drawn, program), `seed ${seed}`).toBe("");
      const owned = program.buffers.filter((b) => b.kind === "scratch" && b.placement && !b.viewOf);
      if (owned.length < 2) continue;
      const [moved, onto] = [rng.pick(owned), rng.pick(owned)];
      const planted = {
        ...program,
        buffers: program.buffers.map((b) =>
          b === moved ? { ...b, placement: onto.placement! } : b,
        ),
      };
      const truth = simulate(drawn, planted, 2 * arenas.scratch);
      // A loop is one task to the planner: there it may refuse what a simulation lets pass.
      const lost = findLostValue(drawn.program, placesOf(planted));
      if (truth !== "") expect(lost, `seed ${seed}: ${truth}`).toBeDefined();
      else if (!drawn.program.tasks.some((t) => t.kind === "repeat")) expect(lost).toBeUndefined();
      const found = judgeStorage(drawn, planted);
      if (truth === "") expect(found, `seed ${seed}`).toBe("");
      if (truth.includes("finds")) expect(found, `seed ${seed}: ${truth}`).toContain("overwritten");
      verdicts[truth.includes("finds") ? "lost" : "kept"]++;
    }
    expect(verdicts.lost).toBeGreaterThan(3);
  });

  it("keeps flags and the rows of tables for as long as tasks ask for them", () => {
    const scratch = (name: string): Buffer => {
      const shape = [constant(16)];
      return { name, kind: "scratch", scope: "memory", dtype: "i32", lanes: 1, shape };
    };
    const write = (to: string, from: string): Kernel => {
      const value = loadExpr(from, [0], { dtype: "i32", lanes: 1 });
      return {
        ...kernelOf(`${to}.${from}`, { reads: ["x"], write: to }),
        roles: [{ name: "main", copies: 1, threads: 1, body: [storeTo(to, [0], value)] }],
      };
    };
    const names = ["flag", "row0", "row1", "t0", "t1", "t2"];
    const flag = { kind: "element", buffer: "flag", index: [constant(0)], negated: false } as const;
    const steps = [
      ["flag", "x"],
      ["row0", "x"],
      ["row1", "x"],
      ["t0", "x"],
      ["t1", "t0"],
    ] as const;
    const table = { name: "row", rows: ["row0", "row1"] };
    const program: Program = {
      ...draw(new Rng(1)).program,
      buffers: [{ ...scratch("x"), kind: "input" }, ...names.map(scratch)],
      kernels: [
        ...steps.map(([to, from]) => write(to, from)),
        write("t2", "row"),
        write("t2", "t1"),
      ],
      tasks: [
        ...steps.map(([to, from]) => launch(`${to}.${from}`)),
        {
          kind: "repeat",
          variable: "r",
          count: constant(2),
          tables: [table],
          body: [launch("t2.row")],
        },
        { kind: "while", condition: flag, maxTrips: constant(3), body: [launch("t2.t1")] },
        { kind: "if", condition: flag, then: [launch("t2.t1")], else: [] },
      ],
    };
    const plan = planMemory(program, new Map(), target);
    invariant(plan.ok, () => "the plan fits");
    const places = names
      .filter((n) => n !== "t0")
      .map((n) => placeOf(plan.value.program, n)?.first);
    expect(places).not.toContain(undefined);
    expect(new Set(places).size).toBe(places.length);
  });

  it("aligns every buffer and ends every arena behind its last byte", () => {
    for (let seed = 0; seed < 60; seed++) {
      const drawn = draw(new Rng(seed));
      const plan = planMemory(drawn.program, drawn.inPlace, target);
      invariant(plan.ok, () => "the plan fits");
      const { program, arenas } = plan.value;
      const taken = new Map<string, number>();
      for (const b of program.buffers) {
        if (!b.placement) continue;
        const first = constantValue(b.placement.byteOffset)!;
        expect(first % target.alignmentBytes).toBe(0);
        const arena = b.placement.arena as keyof typeof arenas;
        expect(first + capacityBytes(b, ranges)).toBeLessThanOrEqual(arenas[arena]);
        if (arena === "scratch") continue;
        // The others are never reused: they follow one another.
        expect(first).toBeGreaterThanOrEqual(taken.get(arena) ?? 0);
        taken.set(arena, first + capacityBytes(b, ranges));
      }
    }
  });
});
