/**
 * A map that turns what it reads as one kernel of blocks, a tile each. Operands whose neighbours lie along another
 * loop than those of the results come through shared memory, everything else is read where it is needed:
 *
 *   load      vectors along the operand's neighbours, all of a thread's on the way together
 *   put       each into shared memory, a row of the tile for each element along the results
 *   barrier
 *   for each vector of results of the thread
 *     take    its elements, one of each of so many rows
 *     compute, store
 *
 * Rows are rotated by a vector every `stored` rows: threads of a warp that take elements of neighbouring vectors of
 * results, so many rows apart, find them in different banks, and a row's vectors stay whole (PTX ISA, "State Spaces":
 * shared; banks are those of the machine). Ends of both axes are guards of loads and stores. Numbers are the
 * schedule's; the validator proves that what is taken has been put there.
 */
import { loadExpr, storeTo } from "../../program/expr.ts";
import type { Buffer, GridAxis, Kernel } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import type { Access } from "../../region/nest.ts";
import { accessKey } from "../../region/statement.ts";
import type { TurnDirective } from "../../schedule/directive.ts";
import {
  type ScheduledRegion,
  type ScheduledTurn,
  symbolRanges,
} from "../../schedule/scheduled-region.ts";
import type { TurnForm } from "../../schedule/turns/turn-form.ts";
import { atMost, type Condition, less } from "../../semantics/condition.ts";
import { type DType, zeroOf } from "../../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  constant,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, loopRange, simplify } from "../../semantics/index-range.ts";
import { Block, type Names } from "../block.ts";
import { reduceConditions } from "../conditions.ts";
import { loadAccess, lowerScalar, type Operand, type Site, storeWrite } from "../operands.ts";

interface TurnContext {
  readonly names: Names;
  readonly operand: (tensor: string) => Operand;
}

export function lowerTurn(
  region: ScheduledRegion,
  turn: ScheduledTurn,
  name: string,
  context: TurnContext,
): Kernel {
  return new TurnLowering(region, turn, context).kernel(name);
}

/** A vector of a tile: its first element along both loops, within the tile. */
interface Place {
  readonly read: IndexExpr;
  readonly written: IndexExpr;
}

/** Vectors of a tile dealt out to its threads: so many parts of a line, and so many lines one after another. */
interface Dealt {
  readonly parts: number;
  readonly trips: number;
  /** First element along the line, of a part, and the line, of a trip. */
  readonly near: (part: IndexExpr) => IndexExpr;
  readonly far: (trip: IndexExpr) => IndexExpr;
}

class TurnLowering {
  readonly #region: ScheduledRegion;
  readonly #form: TurnForm;
  readonly #directive: TurnDirective;
  readonly #context: TurnContext;
  readonly #axes: GridAxis[] = [];
  readonly #ranges = new Map<string, IndexRange>();
  readonly #bindings = new Map<string, IndexExpr>();
  readonly #thread: string;
  /** First elements of the block's tile. */
  readonly #tile: Place;
  readonly #buffers: Buffer[] = [];
  /** Shared memory by access key. */
  readonly #shared = new Map<string, string>();

  constructor(region: ScheduledRegion, { form, directive }: ScheduledTurn, context: TurnContext) {
    this.#region = region;
    this.#form = form;
    this.#directive = directive;
    this.#context = context;
    for (const [name, range] of symbolRanges(region.region)) this.#ranges.set(name, range);
    for (const { name, extent } of form.others) {
      this.#bindings.set(name, this.#axis("batch", extent));
    }
    const [across, down] = directive.tile;
    const written = mul(down, this.#axis("down", ceilDiv(form.written.extent, down)));
    const read = mul(across, this.#axis("across", ceilDiv(form.read.extent, across)));
    this.#tile = { read, written };
    this.#thread = context.names.fresh("thread");
    this.#ranges.set(this.#thread, { min: 0, max: directive.threads - 1 });
  }

  #axis(stem: string, trips: IndexExpr): IndexExpr {
    const name = this.#context.names.fresh(stem);
    const extent = simplify(trips, this.#ranges);
    this.#axes.push({ name, extent });
    this.#ranges.set(name, loopRange(extent, this.#ranges));
    return variable(name);
  }

  kernel(name: string): Kernel {
    const block = new Block(this.#context.names);
    this.#bring(block);
    block.push({ kind: "barrier", scope: "instance" });
    const [across, down] = this.#directive.tile;
    this.#resultsOf(this.#dealt(down, across, this.#directive.lanes[1]), block);
    const { threads } = this.#directive;
    const role = { name: "main", copies: 1, threads, threadVariable: this.#thread };
    return {
      name,
      grid: { unit: "blocks", axes: this.#axes, clusterSize: 1, resident: false },
      buffers: this.#buffers,
      counters: [],
      roles: [{ ...role, body: block.statements }],
      region: this.#region.region.name,
    };
  }

  /** The thread's vectors of a tile with so many elements beside each other, in so many lines. */
  #dealt(beside: number, lines: number, lanes: number): Dealt {
    const { threads } = this.#directive;
    const perLine = beside / lanes;
    const thread = variable(this.#thread);
    if (perLine > threads)
      return {
        ...{ parts: perLine / threads, trips: lines },
        near: (part) => mul(lanes, add(thread, mul(threads, part))),
        far: (trip) => trip,
      };
    const atOnce = threads / perLine;
    return {
      ...{ parts: 1, trips: lines / atOnce },
      near: () => mul(lanes, mod(thread, perLine)),
      far: (trip) => add(floorDiv(thread, perLine), mul(atOnce, trip)),
    };
  }

  /** Results, trip by trip: with loops it is proved that ends cut none of them off. */
  #resultsOf({ parts, trips, near, far }: Dealt, block: Block): void {
    const each = (count: number, into: Block, fill: (at: IndexExpr, own: Block) => void): void => {
      if (count === 1) {
        fill(constant(0), into);
        return;
      }
      const name = this.#context.names.fresh("trip");
      this.#ranges.set(name, { min: 0, max: count - 1 });
      into.loop(name, constant(count), { kind: "serial" }, (own) => fill(variable(name), own));
    };
    each(trips, block, (trip, line) => {
      each(parts, line, (part, own) => {
        const [read, written] = [far(trip), near(part)].map((e) => simplify(e, this.#ranges));
        this.#results({ read: read!, written: written! }, own);
      });
    });
  }

  /**
   * What is turned, from memory into shared memory. Bytes have a register each while they are on the way: they are
   * put as they come, and the assembler brings as many loads forward as it has registers for.
   */
  #bring(block: Block): void {
    const { tile, lanes } = this.#directive;
    const [across, down] = tile;
    const { parts, trips, near, far } = this.#dealt(across, down, lanes[0]);
    const places = Array.from({ length: parts * trips }, (_, n): Place => {
      const read = near(constant(n % parts));
      const written = far(constant(Math.floor(n / parts)));
      return { read: simplify(read, this.#ranges), written: simplify(written, this.#ranges) };
    });
    const puts: (() => void)[] = [];
    for (const { access, bytes } of this.#form.turned) {
      const buffer = this.#makeShared(access);
      for (const place of places) {
        const value = block.bind(this.#load(access, this.#site("read", place, block), place));
        const at = [place.written, this.#rotated(place.read, place.written)];
        const put = (): void => block.push(storeTo(buffer, at, value));
        if (bytes > 1) puts.push(put);
        else put();
      }
    }
    for (const put of puts) put();
  }

  #makeShared(access: Access): string {
    const name = this.#context.names.freshBuffer(`${access.tensor}.tile`);
    const [across, down] = this.#directive.tile;
    const shape = [constant(down), constant(across)];
    const dtype = this.#dtypeOf(access.tensor);
    this.#buffers.push({ name, kind: "scratch", scope: "shared", dtype, lanes: 1, shape });
    this.#shared.set(accessKey(access), name);
    return name;
  }

  /** Where an element of a row of the tile lies in it. */
  #rotated(read: IndexExpr, written: IndexExpr): IndexExpr {
    const { tile, lanes } = this.#directive;
    const [loaded, stored] = lanes;
    const vector = add(floorDiv(read, loaded), floorDiv(written, stored));
    const first = mul(loaded, mod(vector, tile[0] / loaded));
    return simplify(add(first, mod(read, loaded)), this.#ranges);
  }

  /** @param along the loop whose elements are the lanes */
  #site(along: "read" | "written", place: Place, block: Block): Site {
    const lanes = this.#directive.lanes[along === "read" ? 0 : 1];
    const lane = lanes > 1 ? { name: "@lane", lanes } : undefined;
    const bindings = new Map(this.#bindings);
    for (const side of ["read", "written"] as const) {
      const at = add(this.#tile[side], place[side]);
      bindings.set(
        this.#form[side].name,
        lane && side === along ? add(at, variable(lane.name)) : at,
      );
    }
    const ranges = new Map(this.#ranges);
    if (lane) ranges.set(lane.name, { min: 0, max: lanes - 1 });
    const { operand } = this.#context;
    const known = { loops: new Map(), assumed: new Set<string>(), unguarded: false };
    return { bindings, ranges, lane, operand, block, ...known };
  }

  /** Not known to hold: the vector is inside. */
  #inside(along: "read" | "written", place: Place): readonly Condition[] {
    const lanes = this.#directive.lanes[along === "read" ? 0 : 1];
    const ends = (["written", "read"] as const).map((side) => {
      const at = add(this.#tile[side], place[side]);
      const { extent } = this.#form[side];
      return side === along ? atMost(add(at, lanes), extent) : less(at, extent);
    });
    return reduceConditions(ends, this.#ranges);
  }

  #load(access: Access, site: Site, place: Place, along: "read" | "written" = "read"): Expr {
    return loadAccess({ ...access, guard: [...access.guard, ...this.#inside(along, place)] }, site);
  }

  /** A vector of results of the thread. */
  #results(place: Place, block: Block): void {
    const { statement } = this.#form;
    const site = this.#site("written", place, block);
    const read = (access: Access): Expr => {
      const buffer = this.#shared.get(accessKey(access));
      return buffer === undefined
        ? this.#load(access, site, place, "written")
        : this.#take(buffer, this.#dtypeOf(access.tensor), place, block);
    };
    const args = statement.reads.map(read);
    const made = statement.body.map((e) => block.bind(lowerScalar(e, args, site)));
    const operands = [...made, ...statement.finishReads.map(read)];
    const values = statement.finish?.map((e) => block.bind(lowerScalar(e, operands, site))) ?? made;
    const inside = this.#inside("written", place);
    statement.writes.forEach((write, i) => {
      storeWrite(write, values[i]!, inside, site);
    });
  }

  /** One element of each of as many rows of shared memory as a vector of results has lanes. */
  #take(buffer: string, dtype: DType, { read, written }: Place, block: Block): Expr {
    const lanes = this.#directive.lanes[1];
    const column = this.#rotated(read, written);
    const operands = Array.from({ length: lanes }, (_, i) => {
      const at = [simplify(add(written, i), this.#ranges), column];
      return block.bind(
        loadExpr(buffer, at, { dtype, lanes: 1 }, { guard: [], fill: zeroOf(dtype) }),
      );
    });
    const [only] = operands;
    return lanes === 1 ? only! : block.bind({ kind: "pack", dtype, lanes, operands });
  }

  #dtypeOf(tensor: string): DType {
    return this.#region.region.tensors.get(tensor)!.dtype;
  }
}
