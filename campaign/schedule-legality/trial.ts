/**
 * One random schedule of one kernel: directives are drawn and applied one by one, and everything the
 * library says is compared with what looking at all pairs of instances says. What it accepts must compute
 * the kernel's values, with iterations that nothing orders shuffled, and loops made of a tree must visit
 * what the tree visits.
 */
import {
  applyDirective,
  executeTree,
  generateLoops,
  instanceKey,
  judgePlan,
  type Nest,
  type Plan,
  printLoops,
  relocationOf,
  runLoops,
  runTree,
  type StorageDirective,
  scheduleNest,
  smallestChange,
  startPlan,
  type TreeDirective,
  type Verdict,
} from "../../src/affine/index.ts";
import { Rng } from "../../src/support/rng.ts";
import * as brute from "./brute-force.ts";
import { drawDirective } from "./random-directives.ts";
import { compute, hash, homeOf, type Memory } from "./values.ts";

export interface Kernel {
  readonly nest: Nest;
  readonly instances: readonly brute.Located[];
  readonly pairs: readonly brute.Pair[];
  /** Elements of arrays that matter outside. */
  readonly elements: readonly { readonly array: string; readonly index: readonly number[] }[];
  readonly expected: Memory;
}

export function prepareKernel(nest: Nest): Kernel {
  const instances = brute.instancesOf(nest.statements);
  const pairs = brute.conflictsOf(nest, instances);
  const spelled = new Set(instances.flatMap((i) => i.touches.flatMap((t) => t.elements)));
  const elements = [...spelled].flatMap((text) => {
    const array = text.slice(0, text.indexOf("["));
    if (!nest.kept.has(array)) return [];
    const inner = text.slice(array.length + 1, -1);
    return [{ array, index: inner === "" ? [] : inner.split(",").map(Number) }];
  });
  const expected = initial(elements, []);
  compute(nest.statements, executeTree(nest.tree, instances), expected);
  return { nest, instances, pairs, elements, expected };
}

function initial(elements: Kernel["elements"], moves: readonly StorageDirective[]): Memory {
  return new Map(
    elements.map(({ array, index }) => [homeOf(array, index, moves), hash(array, index)]),
  );
}

/** What a trial found out; `trouble` is a disagreement. */
export interface Outcome {
  readonly kind: Verdict["kind"];
  readonly directives: readonly TreeDirective[];
  readonly trouble?: string;
  /** The trouble is that loops were not made within the work that they may take. */
  readonly isUnknown?: true;
}

export function tryKernel(kernel: Kernel, seed: number): Outcome {
  return new Trial(kernel, new Rng(seed)).run();
}

/** Trees that loops are made of: it takes as long as the rest of a trial. */
const shareOfLoops = 0.25;

class Trial {
  readonly #kernel: Kernel;
  readonly #rng: Rng;
  #isUnknown = false;
  #plan: Plan;
  #instances: readonly brute.Located[];
  #pairs: readonly brute.Pair[];
  #moves: StorageDirective[] = [];
  #used: TreeDirective[] = [];

  constructor(kernel: Kernel, rng: Rng) {
    this.#kernel = kernel;
    this.#rng = rng;
    this.#plan = startPlan(kernel.nest);
    this.#instances = kernel.instances;
    this.#pairs = kernel.pairs;
  }

  run(): Outcome {
    for (let n = this.#rng.integer(1, 5); n > 0; n--) {
      const d = drawDirective(this.#rng, this.#plan.nest, this.#plan.tree);
      if (!d) continue;
      const verdict = applyDirective(this.#plan, d, 0);
      if (verdict.kind === "malformed") continue;
      this.#used.push(d);
      const trouble = this.#judgeStep(d, verdict);
      if (trouble !== undefined || verdict.kind !== "legal") return this.#end(verdict, trouble);
      this.#step(d, verdict.plan);
    }
    return this.#judgeEnd();
  }

  #end(verdict: Verdict, trouble?: string): Outcome {
    return {
      kind: verdict.kind,
      directives: this.#used,
      ...(trouble !== undefined && { trouble }),
      ...(this.#isUnknown && { isUnknown: true as const }),
    };
  }

  /** Directives that change the program are judged where they stand. */
  #judgeStep(d: TreeDirective, verdict: Verdict): string | undefined {
    if (verdict.kind === "unknown") return `unknown: ${verdict.reason}`;
    const changes = programKinds.has(d.kind);
    if (!changes) return undefined;
    if (brute.isStray(this.#plan.tree, this.#instances)) return undefined;
    const broken = brute.findBroken(this.#plan.tree, this.#instances, this.#pairs);
    if (broken) return verdict.kind === "illegal" ? undefined : "accepted a broken order";
    if (d.kind !== "fold" && d.kind !== "overwrite" && d.kind !== "buffer") return undefined;
    const lost = this.#lostBy(d);
    if ((lost === undefined) === (verdict.kind === "legal")) return undefined;
    return lost === undefined
      ? `refused sound storage: ${JSON.stringify(verdict)}`
      : `accepted, but ${lost}`;
  }

  #lostBy(d: StorageDirective): string | undefined {
    const relocate = relocationOf(this.#plan, d);
    const { nest } = this.#plan;
    const statements = nest.statements.map((s) => ({
      ...s,
      accesses: s.accesses.map((a) => relocate(s, a)),
    }));
    const named = new Map(statements.map((s) => [s.name, s]));
    const moved = this.#instances.map((i) => ({
      ...i,
      touches: named.get(i.statement)!.accesses.map((a) => brute.touch(a, i.point)),
    }));
    return brute.findLost(this.#plan, this.#instances, moved);
  }

  #step(d: TreeDirective, plan: Plan): void {
    this.#plan = plan;
    if (!programKinds.has(d.kind)) return;
    if (d.kind === "fold" || d.kind === "overwrite") this.#moves.push(d);
    this.#instances = brute.instancesOf(plan.nest.statements);
    this.#pairs = brute.conflictsOf(plan.nest, this.#instances);
  }

  #judgeEnd(): Outcome {
    const { tree } = this.#plan;
    const verdict = judgePlan(this.#plan, 0);
    if (verdict.kind === "unknown") return this.#end(verdict, `unknown: ${verdict.reason}`);
    const stray = brute.isStray(tree, this.#instances);
    if (stray !== (verdict.kind === "malformed")) {
      return this.#end(verdict, `grid loops are shared: ${!stray}`);
    }
    if (stray) return this.#end(verdict);
    const strayed = this.#wrongLoops();
    if (strayed !== undefined) return this.#end(verdict, strayed);
    const broken = brute.findBroken(tree, this.#instances, this.#pairs);
    if (verdict.kind !== (broken ? "illegal" : "legal")) {
      const pair = broken && [broken.first, broken.second].map((i) => this.#instances[i]);
      return this.#end(verdict, `${verdict.kind}, but brute force found ${JSON.stringify(pair)}`);
    }
    return this.#end(verdict, broken ? this.#wrongCure() : this.#wrongValues());
  }

  /** For some trees, legal or not: the loops made of it visit the instances in its order. */
  #wrongLoops(): string | undefined {
    if (this.#rng.uniform() > shareOfLoops) return undefined;
    const { nest, tree } = this.#plan;
    const { statements } = nest;
    const made = generateLoops({ statements, tree });
    if (made.kind === "unknown") {
      this.#isUnknown = true;
      return `loops are unknown: ${made.reason}`;
    }
    const order = executeTree(tree, this.#domain(), { statements }).map(instanceKey);
    const visited = runLoops(made.value, {}).map(instanceKey);
    return order.join() === visited.join() ? undefined : `wrong loops ${printLoops(made.value)}`;
  }

  /** The instances without those that extensions bring in. */
  #domain(): readonly brute.Located[] {
    return this.#instances.filter((i) => !i.statement.endsWith(".tile"));
  }

  /** For some refusals: the suggested change must keep all pairs in order. */
  #wrongCure(): string | undefined {
    const kept = this.#used.every((d) => !programKinds.has(d.kind));
    if (!kept || this.#rng.uniform() > 0.1) return undefined;
    const change = smallestChange(this.#kernel.nest, this.#used, mostJudged);
    if (!change) return "no change is suggested";
    const verdict = scheduleNest(this.#kernel.nest, change.directives);
    if (verdict.kind !== "legal") return `the suggestion ${change.text} is ${verdict.kind}`;
    const { instances, pairs } = this.#kernel;
    const broken = brute.findBroken(verdict.plan.tree, instances, pairs);
    return broken && `the suggestion ${change.text} is illegal`;
  }

  /** Runs the tree twice, as it stands and shuffled. */
  #wrongValues(): string | undefined {
    const { nest, tree } = this.#plan;
    const shuffled = (count: number): readonly number[] => {
      const keyed = Array.from({ length: count }, (_, i) => ({ i, key: this.#rng.uniform() }));
      return keyed.sort((a, b) => a.key - b.key).map((k) => k.i);
    };
    const domain = this.#domain();
    for (const permute of [undefined, shuffled]) {
      const options = { statements: nest.statements, ...(permute && { permute }) };
      const ran = runTree(tree, domain, options);
      if (ran.kind === "miscounted") {
        return `${ran.instance.statement}[${Object.values(ran.instance.point)}] runs ${ran.times} times`;
      }
      if (ran.order.length !== this.#instances.length) {
        return `${ran.order.length} of ${this.#instances.length} instances run`;
      }
      const memory = initial(this.#kernel.elements, this.#moves);
      compute(nest.statements, ran.order, memory);
      for (const { array, index } of this.#kernel.elements) {
        const name = `${array}[${index.join()}]`;
        if (memory.get(homeOf(array, index, this.#moves)) !== this.#kernel.expected.get(name)) {
          return `${name} is wrong${permute ? " when shuffled" : ""}`;
        }
      }
    }
    return undefined;
  }
}

/** Schedules that the search for one change judges. */
const mostJudged = 60;

const programKinds: ReadonlySet<string> = new Set([
  "split-reduction",
  "split-scan",
  "fold",
  "overwrite",
  "buffer",
  "overlap",
]);
