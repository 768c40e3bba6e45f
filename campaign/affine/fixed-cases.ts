/**
 * The trials of the `affine` campaign that are no random draws: isl's own flow and schedule inputs
 * with their expected outputs, and systems known to be hard. Flow outputs must be equal; expected
 * schedules must be accepted as legal with the flags that they carry: a flag that is set must be
 * proved, one that is not set must be false, except "permutable" of a band of one member, which
 * says nothing. Bands that isl gives no flags at all (its Feautrier steps) claim nothing.
 */

import type { IslDriver } from "../../bench/isl/isl-driver.ts";
import { type Judgement, judge } from "../../bench/isl/judge.ts";
import { questions, readMap, readSet } from "../../bench/isl/questions.ts";
import {
  type BandProperties,
  bandProperties,
  type Dependence,
  findFlow,
  type IntegerMap,
  type IntegerSet,
  identityMap,
  intersectDomain,
  intersectParams,
  intersectRange,
  isEqual,
  isLegal,
  makeDependence,
  subtract,
  type TimeMark,
  type TimeSchedule,
} from "../../src/affine/index.ts";
import { invariant } from "../../src/support/invariant.ts";
import { hardCases } from "./hard-cases.ts";
import { caseNames, type DataNode, nodeAt, prepareData, readCase, textAt } from "./isl-data.ts";
import { type TextBand, type TimedTree, timeTree } from "./schedule-text.ts";

/** One fixed trial. */
export type FixedCase = (driver: IslDriver) => Judgement | Promise<Judgement>;

export function fixedCases(): FixedCase[] {
  const missing = prepareData();
  const data: FixedCase[] =
    missing === undefined
      ? [
          ...caseNames("flow", ".ai").map((name) => () => flowCase(name)),
          ...caseNames("schedule", ".sc").map((name) => () => scheduleCase(name)),
        ]
      : [() => ({ kind: "skipped", reason: missing })];
  const hard = hardCases.map(({ name, operands }): FixedCase => {
    const question = questions.find((q) => q.name === name)!;
    return (driver) => judge(driver, question, operands);
  });
  return [...hard, ...data];
}

function verdict(name: string, differences: readonly string[]): Judgement {
  if (differences.length === 0) return { kind: "passed" };
  return { kind: "failed", reason: [name, ...differences].join("\n  ") };
}

function flowCase(name: string): Judgement {
  const input = readCase("flow", `${name}.ai`);
  const expected = readCase("flow", `${name}.flow`);
  const access = (key: string): IntegerMap | undefined => {
    const text = textAt(input, key);
    return text === undefined ? undefined : readMap(text);
  };
  const parts = {
    mustSource: access("must_source"),
    maySource: access("may_source"),
    kill: access("kill"),
  };
  const given = Object.entries(parts).filter(([, map]) => map !== undefined);
  const found = findFlow({
    sink: readMap(textAt(input, "sink")!),
    order: access("schedule_map") ?? timeTree(nodeAt(input, "schedule")!).order,
    ...Object.fromEntries(given),
  });
  if (found.kind === "unknown") return { kind: "unknown", reason: `unknown to us: flow ${name}` };
  const outputs: readonly (readonly [string, IntegerMap])[] = [
    ["must_dependence", found.value.mustDependence],
    ["may_dependence", found.value.mayDependence],
    ["must_no_source", found.value.mustNoSource],
    ["may_no_source", found.value.mayNoSource],
  ];
  const wrong = outputs.filter(
    ([key, map]) => isEqual(map, readMap(textAt(expected, key)!)) !== "yes",
  );
  return verdict(
    `flow ${name}`,
    wrong.map(([key]) => `${key} differs`),
  );
}

function scheduleCase(name: string): Judgement {
  const input = readCase("schedule", `${name}.sc`);
  const tree = timeTree(readCase("schedule", `${name}.st`));
  const schedule = scheduleOf(tree);
  const validity = dependencesOf(input, "validity");
  const coincidence = dependencesOf(input, "coincidence");
  const legality = isLegal(schedule, validity);
  const differences = tree.bands.flatMap((band, i) => {
    const own = (list: readonly Dependence[]): Dependence[] => within(list, band.instances);
    const range = { first: band.first, count: band.count };
    const { permutable } = bandProperties(schedule, own(validity), range);
    const { coincident } = bandProperties(schedule, own(coincidence), range);
    return differencesOf(band, { permutable, coincident }).map((d) => `band ${i}: ${d}`);
  });
  const refused = legality.kind === "legal" ? [] : [`schedule is ${legality.kind}`];
  return verdict(`schedule ${name}`, [...refused, ...differences]);
}

function differencesOf(band: TextBand, found: BandProperties): string[] {
  const out: string[] = [];
  if (!band.flagged) return out;
  const wanted = band.permutable ? "yes" : "no";
  const telling = band.permutable || band.count > 1;
  if (telling && found.permutable !== wanted) out.push(`permutable is ${found.permutable}`);
  band.coincident.forEach((flag, k) => {
    const truth = found.coincident[k];
    if (truth !== (flag ? "yes" : "no")) out.push(`member ${k}: coincident is ${truth}`);
  });
  return out;
}

function scheduleOf(tree: TimedTree): TimeSchedule {
  const times = new Map<string, IntegerMap>();
  for (const piece of tree.order.pieces) {
    const name = piece.input!.name;
    const others = times.get(name)?.pieces ?? [];
    times.set(name, { ...tree.order, pieces: [...others, piece] });
  }
  const marks = tree.sets.map(({ dimension, instances }): TimeMark => {
    const statements = instances.pieces.map((p) => p.output.name);
    return { dimension, kind: "parallel", statements };
  });
  return { times, marks };
}

/** The dependences of a key, one a pair of tuples; no instance depends on itself. */
function dependencesOf(input: DataNode, key: string): Dependence[] {
  const text = textAt(input, key);
  if (text === undefined) return [];
  const instances = readSet(textAt(input, "domain")!);
  const context = textAt(input, "context");
  const given =
    context === undefined ? readMap(text) : intersectParams(readMap(text), readSet(context));
  const others = subtract(restricted(given, instances), identityMap(instances));
  invariant(others.kind === "known", () => `dependences ${text} are too hard`);
  return byTuples(others.value);
}

function restricted(map: IntegerMap, instances: IntegerSet): IntegerMap {
  return intersectRange(intersectDomain(map, instances), instances);
}

/** One dependence for each pair of tuples. */
function byTuples(map: IntegerMap): Dependence[] {
  const groups = new Map<string, IntegerMap>();
  for (const piece of map.pieces) {
    const key = `${piece.input!.name}>${piece.output.name}`;
    groups.set(key, { ...map, pieces: [...(groups.get(key)?.pieces ?? []), piece] });
  }
  return [...groups.values()].map((relation) => makeDependence(relation));
}

/** The dependences between these instances alone. */
function within(dependences: readonly Dependence[], instances: IntegerSet): Dependence[] {
  return dependences.flatMap((d) => byTuples(restricted(d.relation, instances)));
}
