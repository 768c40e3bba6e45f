/**
 * The schedule language in text: one directive a line, as docs/schedule-language.md lists them.
 *
 *   schedule "conv1" for "wasm" {
 *     split S0:oc by 16 -> oc0 oc1
 *     tile S0:(i, j) by (4, 16) -> (i0, j0) (i1, j1)
 *     reorder S0:(n, oc0, oh, ow, ic, oc1)
 *     vectorize S0:oc1
 *     bind S0:ow to threads
 *     fuse S1 into S0:oh
 *     place "t0" in register at S0:ow
 *     stage "x" in local at S0:oh depth 1
 *     multiply S0 by mma tile (128, 128, 32) warps (2, 4) stages 4 swizzle 64
 *     rows S3 threads 256 lanes 4 together 1 keep registers
 *     attend S38 by mma tile (128, 64) warps 4 stages 2
 *     turn S2 tile (64, 64) threads 256 lanes (8, 8)
 *     layout "w" [4, 27, 16] holds [p1, 16*p0 + p2] at [floorDiv(l1, 16), l0, mod(l1, 16)]
 *   }
 *
 * The directives that only trees can say are spelled in affine/tree/directive-text.ts and read in
 * tree-directive-reader.ts.
 */
import { printTreeDirective } from "../affine/index.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import { attempt, type Result } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";
import { TextWriter } from "../support/text-writer.ts";
import {
  attenders,
  type Directive,
  gridLevels,
  isTreeOnly,
  type MemoryScope,
  multipliers,
  type RowsDirective,
  rowKeepers,
  type Schedule,
  swizzles,
} from "./directive.ts";
import {
  readFactors,
  readLoop,
  readNames,
  readTreeDirective,
} from "./tree/tree-directive-reader.ts";

export function printSchedule(schedule: Schedule): string {
  const out = new TextWriter();
  out.line(`schedule ${quote(schedule.region)} for ${quote(schedule.target)} {`);
  out.indented(() => {
    for (const d of schedule.directives) out.line(printDirective(d));
  });
  return out.line("}").toString();
}

export function printDirective(d: Directive): string {
  if (isTreeOnly(d)) return printTreeDirective(d);
  switch (d.kind) {
    case "split":
      return `split ${d.statement}:${d.loop} by ${d.factor} -> ${d.outer} ${d.inner}`;
    case "tile": {
      const factors = d.factors.join(", ");
      return `tile ${d.statement}:(${d.loops.join(", ")}) by (${factors}) -> (${d.outer.join(", ")}) (${d.inner.join(", ")})`;
    }
    case "reorder":
      return `reorder ${d.statement}:(${d.order.join(", ")})`;
    case "vectorize":
    case "unroll":
    case "parallelize":
      return `${d.kind} ${d.statement}:${d.loop}`;
    case "bind":
      return `bind ${d.statement}:${d.loop} to ${d.level}`;
    case "fuse":
      return `fuse ${d.statement} into ${d.into}:${d.at}`;
    case "place":
      return `place ${quote(d.tensor)} in ${d.scope} at ${d.statement}:${d.at}`;
    case "stage":
      return `stage ${quote(d.tensor)} in ${d.scope} at ${d.statement}:${d.at} depth ${d.depth}`;
    case "multiply": {
      const [tile, warps] = [d.tile.join(", "), d.warps.join(", ")];
      const group = d.group === 1 ? "" : ` group ${d.group}`;
      const results = d.results === 0 ? "" : ` results ${d.results}`;
      const blocks = d.blocks === 0 ? "" : ` blocks ${d.blocks}`;
      const teams = d.teams === 1 ? "" : ` teams ${d.teams}`;
      const parts = d.parts === 1 ? "" : ` parts ${d.parts}`;
      const cluster = d.cluster === 1 ? "" : ` cluster ${d.cluster}`;
      return `multiply ${d.statement} by ${d.by} tile (${tile}) warps (${warps}) stages ${d.stages} swizzle ${d.swizzle}${group}${results}${blocks}${teams}${parts}${cluster}${d.ahead ? " ahead" : ""}${d.swapped ? " swapped" : ""}`;
    }
    case "rows":
      return printRows(d);
    case "attend":
      return `attend ${d.statement} by ${d.by} tile (${d.tile.join(", ")}) warps ${d.warps} stages ${d.stages}${d.gathered ? " gathered" : ""}${d.parts === 1 ? "" : ` parts ${d.parts}`}${d.splits === 1 ? "" : ` splits ${d.splits}`}`;
    case "turn":
      return `turn ${d.statement} tile (${d.tile.join(", ")}) threads ${d.threads} lanes (${d.lanes.join(", ")})`;
    case "layout": {
      const keys = (list: readonly IndexExpr[]): string => list.map((e) => e.key).join(", ");
      const { shape, logical, stored } = d.layout;
      return `layout ${quote(d.tensor)} [${keys(shape)}] holds [${keys(logical)}] at [${keys(stored)}]`;
    }
  }
}

function printRows(d: RowsDirective): string {
  const across = d.across ? " across" : "";
  const items = d.items === 1 ? "" : ` items ${d.items}`;
  const parts = d.parts === 1 ? "" : ` parts ${d.parts}`;
  const shared = d.shared === 0 ? "" : ` shared ${d.shared}`;
  return `rows ${d.statement} threads ${d.threads} lanes ${d.lanes} together ${d.rows}${across}${items}${parts} keep ${d.keep}${shared}`;
}

/** Parses a schedule; TXT001 with the line where it is malformed. */
export function parseSchedule(text: string): Result<Schedule> {
  return attempt(() => {
    const reader = new TextReader(text);
    const schedule = readSchedule(reader);
    if (reader.peek().kind !== "end") reader.fail("the end of the schedule");
    return schedule;
  });
}

/** Any number of schedules, one behind the other. */
export function parseSchedules(text: string): Result<readonly Schedule[]> {
  return attempt(() => {
    const reader = new TextReader(text);
    const schedules: Schedule[] = [];
    while (reader.peek().kind !== "end") schedules.push(readSchedule(reader));
    return schedules;
  });
}

function readSchedule(reader: TextReader): Schedule {
  reader.expect("schedule");
  const region = reader.string("the region's name in quotes");
  reader.expect("for");
  const target = reader.string("the target's name in quotes");
  reader.expect("{");
  const directives: Directive[] = [];
  while (!reader.accept("}")) directives.push(readDirective(reader));
  return { region, target, directives };
}

function readDirective(reader: TextReader): Directive {
  const word = reader.name("a directive");
  const kind = (reader.accept("-") ? `${word}-${reader.name()}` : word) as Directive["kind"];
  const tree = readTreeDirective(reader, kind);
  if (tree) return tree;
  switch (kind) {
    case "split": {
      const [statement, loop] = readLoop(reader);
      reader.expect("by");
      const factor = reader.number("a factor");
      reader.expect("->");
      return { kind, statement, loop, factor, outer: reader.name(), inner: reader.name() };
    }
    case "tile": {
      const statement = reader.name();
      reader.expect(":");
      const loops = readNames(reader);
      reader.expect("by");
      const factors = readFactors(reader);
      reader.expect("->");
      return {
        kind,
        statement,
        loops,
        factors,
        outer: readNames(reader),
        inner: readNames(reader),
      };
    }
    case "reorder": {
      const statement = reader.name();
      reader.expect(":");
      return { kind, statement, order: readNames(reader) };
    }
    case "vectorize":
    case "unroll":
    case "parallelize": {
      const [statement, loop] = readLoop(reader);
      return { kind, statement, loop };
    }
    case "bind": {
      const [statement, loop] = readLoop(reader);
      reader.expect("to");
      const word = reader.name("blocks, groups or threads");
      const level = gridLevels.find((l) => l === word) ?? reader.fail(gridLevels.join(", "));
      return { kind, statement, loop, level };
    }
    case "fuse": {
      const statement = reader.name();
      reader.expect("into");
      const [into, at] = readLoop(reader);
      return { kind, statement, into, at };
    }
    case "place":
    case "stage":
      return readPlacement(reader, kind);
    case "multiply":
      return readMultiply(reader);
    case "rows":
      return readRows(reader);
    case "attend":
      return readAttend(reader);
    case "turn":
      return readTurn(reader);
    case "layout": {
      const tensor = reader.string();
      const shape = readIndexList(reader);
      reader.expect("holds");
      const logical = readIndexList(reader);
      reader.expect("at");
      return { kind, tensor, layout: { shape, logical, stored: readIndexList(reader) } };
    }
    default:
      return reader.fail(
        "split, tile, reorder, interchange, skew, vectorize, parallelize, fuse, place, …",
      );
  }
}

function readMultiply(reader: TextReader): Directive {
  const statement = reader.name("a statement");
  reader.expect("by");
  const word = reader.name(multipliers.join(" or "));
  const by = multipliers.find((m) => m === word) ?? reader.fail(multipliers.join(" or "));
  reader.expect("tile");
  const [rows, columns, depth] = readNumbers(reader, 3);
  reader.expect("warps");
  const [down, across] = readNumbers(reader, 2);
  reader.expect("stages");
  const stages = reader.number("a number of stages");
  reader.expect("swizzle");
  const bytes = reader.number("0, 32, 64 or 128");
  const swizzle = swizzles.find((n) => n === bytes) ?? reader.fail("0, 32, 64 or 128");
  const tile = [rows!, columns!, depth!] as const;
  const group = reader.accept("group") ? reader.number() : 1;
  const results = reader.accept("results") ? reader.number() : 0;
  const blocks = reader.accept("blocks") ? reader.number() : 0;
  const teams = reader.accept("teams") ? reader.number() : 1;
  const parts = reader.accept("parts") ? reader.number() : 1;
  const cluster = reader.accept("cluster") ? reader.number() : 1;
  const ahead = reader.accept("ahead");
  const swapped = reader.accept("swapped");
  const warps = [down!, across!] as const;
  const shape = { tile, warps, stages, swizzle, group } as const;
  const how = { results, blocks, teams, parts, cluster, ahead, swapped } as const;
  return { kind: "multiply", statement, by, ...shape, ...how };
}

function readRows(reader: TextReader): Directive {
  const statement = reader.name("a statement");
  reader.expect("threads");
  const threads = reader.number("threads of a row");
  reader.expect("lanes");
  const lanes = reader.number("lanes of a vector");
  reader.expect("together");
  const rows = reader.number("rows of a block");
  const across = reader.accept("across");
  const items = reader.accept("items") ? reader.number("elements that a thread takes at once") : 1;
  const parts = reader.accept("parts") ? reader.number("parts of a row") : 1;
  reader.expect("keep");
  const word = reader.name(rowKeepers.join(" or "));
  const keep = rowKeepers.find((k) => k === word) ?? reader.fail(rowKeepers.join(" or "));
  const shared = reader.accept("shared") ? reader.number("vectors in shared memory") : 0;
  return { kind: "rows", statement, threads, lanes, rows, across, items, parts, keep, shared };
}

function readAttend(reader: TextReader): Directive {
  const statement = reader.name("a statement");
  reader.expect("by");
  const word = reader.name(attenders.join(" or "));
  const by = attenders.find((a) => a === word) ?? reader.fail(attenders.join(" or "));
  reader.expect("tile");
  const [rows, columns] = readNumbers(reader, 2);
  reader.expect("warps");
  const warps = reader.number("warps of a block");
  reader.expect("stages");
  const stages = reader.number("a number of stages");
  const gathered = reader.accept("gathered");
  const parts = reader.accept("parts") ? reader.number() : 1;
  const splits = reader.accept("splits") ? reader.number() : 1;
  const tile = [rows!, columns!] as const;
  return { kind: "attend", statement, by, tile, warps, stages, gathered, parts, splits };
}

function readTurn(reader: TextReader): Directive {
  const statement = reader.name("a statement");
  reader.expect("tile");
  const [read, written] = readNumbers(reader, 2);
  reader.expect("threads");
  const threads = reader.number("threads of a block");
  reader.expect("lanes");
  const [loaded, stored] = readNumbers(reader, 2);
  const numbers = { tile: [read!, written!], threads, lanes: [loaded!, stored!] } as const;
  return { kind: "turn", statement, ...numbers };
}

function readNumbers(reader: TextReader, count: number): readonly number[] {
  reader.expect("(");
  const numbers = reader.list(")", () => reader.number());
  return numbers.length === count ? numbers : reader.fail(`${count} numbers`);
}

function readPlacement(reader: TextReader, kind: "place" | "stage"): Directive {
  const tensor = reader.string();
  reader.expect("in");
  const scope = reader.name("a memory scope") as MemoryScope;
  reader.expect("at");
  const [statement, at] = readLoop(reader);
  if (kind === "place") return { kind, tensor, scope, statement, at };
  reader.expect("depth");
  return { kind, tensor, scope, statement, at, depth: reader.number("a depth") };
}

function readIndexList(reader: TextReader): IndexExpr[] {
  reader.expect("[");
  return reader.list("]", () => readIndexExpr(reader));
}

function quote(name: string): string {
  return JSON.stringify(name);
}
