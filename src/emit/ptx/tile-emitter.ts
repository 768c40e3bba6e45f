/**
 * Tile intrinsics as instructions: what each row of program/tile-rows.ts is spelled as, and the groups
 * under which asynchronous ones complete. Descriptors and fragments: PTX ISA, "Asynchronous Warpgroup
 * Level Matrix Shared Memory Layout", "Matrix Fragments", "cp.async.bulk.tensor".
 */
import { rowMajorStrides } from "../../program/addresses.ts";
import { guardedCopy } from "../../program/guarded-copy.ts";
import { findTileIntrinsic } from "../../program/intrinsic-table.ts";
import type { TileIntrinsic } from "../../program/intrinsics.ts";
import type { IntrinsicOperand, Statement } from "../../program/statement.ts";
import { visitStatements } from "../../program/walk.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import { featuresOf } from "./capability.ts";
import { type IndexUse, withoutConstant } from "./index-scope.ts";
import type { KernelContext, MemoryPlace, RegisterPlace } from "./kernel-context.ts";
import { alignmentAt, spellAddress } from "./memory-access.ts";
import type { Operand } from "./ptx-code.ts";
import type { PtxCounts, TensorMapParameter } from "./ptx-module.ts";

type Issue = Extract<Statement, { kind: "intrinsic" }>;
type If = Extract<Statement, { kind: "if" }>;
type Tile = Extract<IntrinsicOperand, { kind: "tile" }>;
type CellAddress = (counter: string, index: readonly ix.IndexExpr[]) => string;
type GroupKind = "wgmma" | "cp.async" | "bulk";

/** Variables that the emitter binds: the lane, and the shared base as descriptors have it. */
export const laneVariable = "@lane";
export const sharedVariable = "@shared";
export const descriptorVariable = "@descriptor";
/** Bits 16-29 of a descriptor: a leading offset that swizzled layouts do not read. */
export const descriptorTemplate = 1 << 16;

/** Types as matrix instructions spell them, where programs have another name. */
const spelledTypes: Readonly<Record<string, string>> = {
  ...{ f8e4m3fn: "e4m3", f8e5m2: "e5m2" },
  ...{ i32: "s32", i8: "s8" },
};

function spelledType(name: string): string {
  return spelledTypes[name] ?? name;
}

/** Bytes of a row of one of the matrices that ldmatrix moves. */
const matrixRowBytes = 16;

export type MutableCounts = { -readonly [K in keyof PtxCounts]: number };

export interface TileParts {
  readonly context: KernelContext;
  readonly body: readonly Statement[];
  /** Threads of a copy of the role. */
  readonly threads: number;
  readonly clusterSize: number;
  readonly counts: MutableCounts;
  /** The register with the address of a descriptor parameter. */
  readonly tensorMap: (map: TensorMapParameter) => Operand;
}

export class TileEmitter {
  readonly #parts: TileParts;
  readonly #context: KernelContext;
  readonly #groups = new Map<string, GroupKind>();
  /** Whether a wgmma.fence stands before the multiplications of the batch that is open. */
  #isFenced = false;

  constructor(parts: TileParts) {
    this.#parts = parts;
    this.#context = parts.context;
    this.#findGroups();
  }

  /** A register buffer was written: multiplications after it need a fence. */
  registersChanged(): void {
    this.#isFenced = false;
  }

  /** Groups by the instructions issued under them; hardware has one sequence a kind. */
  #findGroups(): void {
    const named = new Map<GroupKind, string>();
    visitStatements(this.#parts.body, (s) => {
      if (s.kind !== "intrinsic" || s.completion.kind !== "group") return;
      const { group } = s.completion;
      const kind = groupKindOf(s.intrinsic);
      const [known, other] = [this.#groups.get(group) ?? kind, named.get(kind) ?? group];
      if (known !== kind || other !== group) {
        this.#context.statement = `group ${group}`;
        this.#context.refuse(
          known !== kind
            ? `one group of ${known} and ${kind}`
            : `two groups of ${kind} in a role: ${other} and ${group}`,
          "give each kind of asynchronous work of a role one group",
        );
      }
      this.#groups.set(group, kind);
      named.set(kind, group);
    });
  }

  commit(group: string): void {
    const { code } = this.#context;
    this.#isFenced = false;
    const kind = this.#groups.get(group);
    if (kind === "wgmma") code.emit("wgmma.commit_group.sync.aligned");
    if (kind === "cp.async") code.emit("cp.async.commit_group");
    if (kind === "bulk") code.emit("cp.async.bulk.commit_group");
  }

  awaitGroup(group: string, pending: number): void {
    const { code } = this.#context;
    this.#isFenced = false;
    const kind = this.#groups.get(group);
    if (kind === "wgmma") {
      code.emit(`wgmma.wait_group.sync.aligned ${pending}`);
      this.#parts.counts.wgmmaWaits++;
    }
    if (kind === "cp.async") code.emit(`cp.async.wait_group ${pending}`);
    if (kind === "bulk") code.emit(`cp.async.bulk.wait_group ${pending}`);
  }

  emit(s: Issue, cell: CellAddress): void {
    const row = this.#row(s);
    if (row.name.startsWith("wgmma.held.")) this.#wgmmaHeld(s, row);
    else if (row.name.startsWith("wgmma."))
      this.#wgmma(s, row, row.name.includes(".set.") ? "0" : "1");
    else if (row.name.startsWith("mma.")) this.#mma(s, row);
    else if (row.name.startsWith("ldmatrix.")) this.#moveMatrix(s, row, "load");
    else if (row.name.startsWith("stmatrix.")) this.#moveMatrix(s, row, "store");
    else if (row.name.startsWith("bulk.load.")) this.#bulkLoad(s, cell);
    else if (row.name.startsWith("bulk.store.")) this.#bulkStore(s);
    else if (row.name === "cp.async") this.#asyncCopy(s);
    else if (row.name.startsWith("peer.store.")) this.#peerStore(s, cell);
    else if (row.name.startsWith("shuffle.")) this.#shuffle(s, row);
    else if (row.name.startsWith("setmaxnreg.")) this.#setRegisters(row);
    else this.#context.refuse(`intrinsic ${row.name}`);
  }

  /** The row, if the architecture has what it needs. */
  #row(s: Issue): TileIntrinsic {
    const row = findTileIntrinsic(s.intrinsic);
    if (!row) return this.#context.refuse(`intrinsic ${s.intrinsic}: nothing is called so`);
    const wanted = featuresOf(row.needs);
    const missing = wanted?.filter((f) => !this.#context.has(f)) ?? [row.needs];
    if (missing.length > 0) {
      this.#context.refuse(
        `intrinsic ${row.name}: it has no ${missing.join(", ")}`,
        "choose a schedule with instructions that the target lists",
      );
    }
    const unit = { thread: 1, warp: 32, copy: 128, role: 1 }[row.collective];
    if (this.#parts.threads % unit !== 0 || (unit === 128 && this.#parts.threads !== unit)) {
      this.#context.refuse(
        `intrinsic ${row.name} in copies of ${this.#parts.threads} threads`,
        `give the copies of the role ${unit === 128 ? "128 threads" : "whole warps"}`,
      );
    }
    return row;
  }

  /** A guarded copy is one that brings zeros where the condition fails; whether the branch was that. */
  foldedCopy(s: If): boolean {
    const copy = guardedCopy(s);
    const { scope } = this.#context;
    const holds = copy && scope.conditions(s.conditions);
    if (!copy || !holds) return false;
    this.#row(copy);
    this.#asyncCopy(copy, holds);
    return true;
  }

  /**
   * `if c { wgmma.set … } else { wgmma … }` on the same operands is one instruction with a predicate;
   * whether the branch was that.
   */
  foldedBranch(s: If): boolean {
    const [a, b] = [s.then[0], s.else[0]];
    if (s.then.length !== 1 || s.else.length !== 1) return false;
    if (a?.kind !== "intrinsic" || b?.kind !== "intrinsic") return false;
    const isPair =
      a.intrinsic.startsWith("wgmma.set.") && b.intrinsic === a.intrinsic.replace(".set.", ".");
    if (
      !isPair ||
      JSON.stringify([a.operands, a.completion]) !== JSON.stringify([b.operands, b.completion])
    ) {
      return false;
    }
    const { code, scope } = this.#context;
    const forgets = scope.conditions(s.conditions);
    if (!forgets) return false;
    this.#wgmma(b, this.#row(b), code.op("not.pred", "p", forgets));
    return true;
  }

  /** Index expressions that the spelling asks the scope for. */
  usesOf(s: Issue): readonly IndexUse[] {
    const row = findTileIntrinsic(s.intrinsic);
    const uses: IndexUse[] = [];
    s.operands.forEach((operand, i) => {
      if (operand.kind !== "tile" || row?.operands[i]?.layout === "fragment") return;
      const place = this.#context.place(operand.buffer);
      if (place.kind !== "memory") return;
      if (row?.name.startsWith("bulk.") && place.space === "global") {
        for (const e of operand.index) uses.push({ expr: withoutConstant(e), bits: 32 });
      } else if (row?.name.startsWith("wgmma.")) {
        const low = this.#descriptorLow(place, operand);
        if (low) uses.push({ expr: withoutConstant(low), bits: 32 });
      } else {
        const address = withoutConstant(this.#tileAddress(place, operand, row));
        uses.push({ expr: address, bits: place.space === "shared" ? 32 : 64 });
      }
    });
    return uses;
  }

  #tile(s: Issue, i: number): Tile {
    const operand = s.operands[i];
    invariant(operand?.kind === "tile", () => `operand ${i} of ${s.intrinsic} is no tile`);
    return operand;
  }

  #memory(tile: Tile): MemoryPlace {
    const place = this.#context.place(tile.buffer);
    invariant(place.kind === "memory", () => `${tile.buffer} is in registers`);
    return place;
  }

  /** Registers of a fragment of `count` elements: words of several where it is packed. */
  #fragment(tile: Tile, count: number): readonly Operand[] {
    const place = this.#context.place(tile.buffer) as RegisterPlace;
    invariant(place.kind === "register", () => `${tile.buffer} is not in registers`);
    const first = this.#context.flatRegister(place, tile.index);
    const step = place.perWord;
    if (first % step !== 0) this.#context.refuse(`a fragment from element ${first} on`);
    return Array.from({ length: count / step }, (_, i) =>
      this.#context.registerOf(place, first + i * step),
    );
  }

  #mma(s: Issue, row: TileIntrinsic): void {
    const { code } = this.#context;
    const [, shape, sum, left, right = left] = row.name
      .replace(".set.", ".")
      .split(".")
      .map(spelledType);
    const [d, a, b] = row.operands.map((o, i) =>
      list(this.#fragment(this.#tile(s, i), (o.extents as readonly number[])[0]!)),
    );
    const zero = row.name.includes(".set.") ? code.op("mov.b32", "r", "0") : undefined;
    const c = zero === undefined ? d : list([zero, zero, zero, zero]);
    code.emit(
      `mma.sync.aligned.${shape}.row.col.${sum}.${left}.${right}.${sum} ${d}, ${a}, ${b}, ${c}`,
    );
    this.#parts.counts.mma++;
  }

  /** Before the first multiplication of a batch, and after registers were written. */
  #fence(): void {
    if (!this.#isFenced) this.#context.code.emit("wgmma.fence.sync.aligned");
    this.#isFenced = true;
  }

  /** The left operand from registers, the right one with its rows along the depth. */
  #wgmmaHeld(s: Issue, row: TileIntrinsic): void {
    const { code } = this.#context;
    this.#fence();
    const [, , shape, , input] = row.name.split(".");
    const [d, a] = [0, 1].map((i) => {
      const [count] = row.operands[i]!.extents as readonly number[];
      return list(this.#fragment(this.#tile(s, i), count!));
    });
    const b = this.#descriptor(this.#tile(s, 2));
    const keeps = code.op("setp.ne.s32", "p", "1", "0");
    code.emit(
      `wgmma.mma_async.sync.aligned.${shape}.f32.${input}.${input} ${d}, ${a}, ${b}, ${keeps}, 1, 1, 1`,
    );
    this.#parts.counts.wgmma++;
  }

  #wgmma(s: Issue, row: TileIntrinsic, scale: Operand): void {
    const { code } = this.#context;
    this.#fence();
    const [, shape, sum, left, right = left] = row.name
      .replace(".set.", ".")
      .replace(/\.trans\.\w+/, "")
      .split(".")
      .map(spelledType);
    const count = (row.operands[0]!.extents as readonly number[])[0]!;
    const d = list(this.#fragment(this.#tile(s, 0), count));
    const [a, b] = [1, 2].map((i) => this.#descriptor(this.#tile(s, i)));
    const turned = [1, 2].map((i) => (isTurned(this.#tile(s, i)) ? 1 : 0)).join(", ");
    const keeps = scale.startsWith("%") ? scale : code.op("setp.ne.s32", "p", scale, "0");
    // Which way operands lie is said of 16-bit elements alone, their signs of floats.
    const { bits } = dtypes[row.operands[1]!.dtype as DType];
    const rest = sum === "s32" ? "" : bits === 16 ? `, 1, 1, ${turned}` : ", 1, 1";
    code.emit(
      `wgmma.mma_async.sync.aligned.${shape}.${sum}.${left}.${right} ${d}, ${a}, ${b}, ${keeps}${rest}`,
    );
    this.#parts.counts.wgmma++;
  }

  /** Address and strides of a tile of shared memory: rows of as many bytes as the swizzle spans. */
  #descriptor(tile: Tile): Operand {
    const { code, scope } = this.#context;
    const place = this.#memory(tile);
    const span = place.swizzleBytes;
    const rowBytes = this.#rowBytes(place);
    if (span === 0 || rowBytes !== span) {
      this.#context.refuse(
        `a matrix operand in rows of ${rowBytes} bytes with a swizzle of ${span}`,
        "stage the operand in rows as wide as its swizzle",
      );
    }
    const low = this.#descriptorLow(place, tile);
    if (!low) this.#context.refuse(`a matrix operand at ${tile.buffer} that is not aligned to 16`);
    const layouts = { 128: 1, 64: 2, 32: 3 } as const;
    const high = (span * 8) / 16 + layouts[span] * 2 ** 30;
    const descriptor = code.fresh("d");
    code.emit(`mov.b64 ${descriptor}, {${scope.register(low, 32)}, ${high}}`);
    return descriptor;
  }

  #rowBytes(place: MemoryPlace): number {
    const { shape, dtype } = place.buffer;
    return ((ix.constantValue(shape.at(-1) ?? ix.constant(0)) ?? 0) * dtypes[dtype].bits) / 8;
  }

  /**
   * The low word over index variables: the address in units of 16 bytes and the template, with the step from
   * panel to panel where the operand has such.
   */
  #descriptorLow(place: MemoryPlace, tile: Tile): ix.IndexExpr | undefined {
    const address = this.#context.address(place, tile.index);
    const inside = ix.add(address, ix.negate(ix.variable(sharedVariable)));
    const coefficients = [inside.constant, ...inside.terms.map((t) => t.coefficient)];
    if (coefficients.some((c) => c % 16 !== 0)) return undefined;
    const low = ix.add(ix.variable(descriptorVariable), ix.floorDiv(inside, 16));
    if (!isTurned(tile)) return low;
    const step = ix.constantValue(rowMajorStrides(place.buffer.shape).at(-3)!);
    if (step === undefined) return undefined;
    const units = (step * this.#context.elementBytes(place.buffer)) / 16;
    return ix.add(low, (units - 1) * descriptorTemplate);
  }

  /** Where each lane's row of a 16 x 16 tile begins, or the tile itself. */
  #tileAddress(place: MemoryPlace, tile: Tile, row: TileIntrinsic | undefined): ix.IndexExpr {
    const address = this.#context.address(place, tile.index);
    if (!row || !/^(ld|st)matrix/.test(row.name)) return address;
    const lane = ix.variable(laneVariable);
    const [odd, high] = [ix.mod(ix.floorDiv(lane, 8), 2), ix.floorDiv(lane, 16)];
    // The second of the four 8 x 8 matrices stands below the first, or beside it.
    const below = row.name.includes(".right.") === row.name.includes(".trans.");
    const inRow = ix.add(ix.mod(lane, 8), ix.mul(8, below ? odd : high));
    const strides = rowMajorStrides(place.buffer.shape);
    const bytes = this.#context.elementBytes(place.buffer);
    const inColumn = ix.mul(matrixRowBytes / bytes, below ? high : odd);
    const offset = ix.add(ix.mul(inRow, strides.at(-2)!), inColumn);
    return ix.add(address, ix.mul(bytes, offset));
  }

  #moveMatrix(s: Issue, row: TileIntrinsic, direction: "load" | "store"): void {
    const { code } = this.#context;
    const inRegisters = this.#tile(s, direction === "load" ? 0 : 1);
    const inShared = this.#tile(s, direction === "load" ? 1 : 0);
    const place = this.#memory(inShared);
    const address = this.#tileAddress(place, inShared, row);
    const at = this.#alignedAt(place, address, matrixRowBytes);
    const [count] = row.operands[direction === "load" ? 0 : 1]!.extents as readonly number[];
    const words = list(this.#fragment(inRegisters, count!));
    if (direction === "load") {
      this.#parts.counts.matrixLoads++;
      const across = row.name.includes(".trans.") ? ".trans" : "";
      code.emit(`ldmatrix.sync.aligned.m8n8.x4${across}.shared.b16 ${words}, ${at}`);
    } else code.emit(`stmatrix.sync.aligned.m8n8.x4.shared.b16 ${at}, ${words}`);
  }

  /** An address of an instruction that traps where it is no multiple of what it moves. */
  #alignedAt(place: MemoryPlace, address: ix.IndexExpr, bytes: number): string {
    if (alignmentAt(place, address) < bytes) {
      this.#context.refuse(
        `${bytes} bytes of ${place.buffer.name} at ${address.key}`,
        `move them where addresses are multiples of ${bytes}, or fewer bytes at a time`,
      );
    }
    return spellAddress(this.#context, place, address);
  }

  #shuffle(s: Issue, row: TileIntrinsic): void {
    const { code } = this.#context;
    this.#context.hasExchanged = true;
    const distance = /xor(\d+)/.exec(row.name)![1];
    const [to, from] = [this.#fragment(this.#tile(s, 0), 1), this.#fragment(this.#tile(s, 1), 1)];
    const exchange = (into: Operand, own: Operand): void => {
      code.emit(`shfl.sync.bfly.b32 ${into}, ${own}, ${distance}, 31, 0xffffffff`);
    };
    const { buffer } = this.#context.place(this.#tile(s, 0).buffer);
    if (this.#context.elementBytes(buffer) === 4) {
      exchange(to[0]!, from[0]!);
      return;
    }
    // Two words, one after the other.
    const [own, other] = [0, 1].map(() => [code.fresh("r"), code.fresh("r")] as const);
    code.emit(`mov.b64 {${own!.join(", ")}}, ${from[0]}`);
    for (const word of [0, 1] as const) exchange(other![word], own![word]);
    code.emit(`mov.b64 ${to[0]}, {${other!.join(", ")}}`);
  }

  #setRegisters(row: TileIntrinsic): void {
    const [, direction, count] = row.name.split(".");
    this.#context.code.emit(`setmaxnreg.${direction}.sync.aligned.u32 ${count}`);
  }

  #asyncCopy(s: Issue, holds?: Operand): void {
    const { code } = this.#context;
    const [to, from] = [this.#tile(s, 0), this.#tile(s, 1)];
    const [target, source] = [this.#memory(to), this.#memory(from)];
    const bytes = (to.extents[0] ?? 1) * this.#context.elementBytes(target.buffer);
    if (bytes !== 4 && bytes !== 8 && bytes !== 16) {
      this.#context.refuse(`cp.async of ${bytes} bytes`, "copy 4, 8 or 16 bytes a thread");
    }
    const at = this.#alignedAt(target, this.#context.address(target, to.index), bytes);
    const read = this.#alignedAt(source, this.#context.address(source, from.index), bytes);
    const cache = bytes === 16 ? "cg" : "ca";
    this.#parts.counts.asyncCopies++;
    const size = holds ? `, ${code.op("selp.b32", "r", String(bytes), "0", holds)}` : "";
    code.emit(`cp.async.${cache}.shared.global ${at}, ${read}, ${bytes}${size}`);
  }

  #bulkLoad(s: Issue, cell: CellAddress): void {
    const { code } = this.#context;
    const { completion } = s;
    invariant(completion.kind === "signals", () => "a bulk load that signals nothing");
    const [to, from] = [this.#tile(s, 0), this.#tile(s, 1)];
    const map = this.#mapOf(from, to);
    const multicast = completion.scope === "cluster" && this.#parts.clusterSize > 1;
    const rank = from.index.length;
    const name = `cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`;
    const mask = multicast
      ? `, ${code.op("mov.b16", "h", String(2 ** this.#parts.clusterSize - 1))}`
      : "";
    const bar = cell(completion.counter, completion.index);
    const operands = [this.#linear(to), `[${map}, {${this.#coordinates(from)}}]`, bar].join(", ");
    code.emit(`${name}${multicast ? ".multicast::cluster" : ""} ${operands}${mask}`);
    this.#parts.counts.tensorCopies++;
  }

  /** Four words of a thread to the same place of another block, counted there. */
  #peerStore(s: Issue, cell: CellAddress): void {
    const { code, scope } = this.#context;
    const { completion } = s;
    invariant(completion.kind === "signals" && completion.peer, () => "a store to no peer");
    const [to, from] = [this.#tile(s, 0), this.#tile(s, 1)];
    const place = this.#memory(to);
    const own = spellAddress(this.#context, place, this.#context.address(place, to.index));
    const rank = scope.register(completion.peer, 32);
    // Shared memory of a peer lies in one window: places keep their distances.
    const [at, bar] = [own, cell(completion.counter, completion.index)].map((address) =>
      address.replace(/%\w+/, (base) => code.op("mapa.shared::cluster.u32", "r", base, rank)),
    );
    const words = list(this.#fragment(from, 4));
    code.emit(
      `st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 ${at}, ${words}, ${bar}`,
    );
    this.#parts.counts.peerStores++;
  }

  #bulkStore(s: Issue): void {
    const { code } = this.#context;
    const [to, from] = [this.#tile(s, 0), this.#tile(s, 1)];
    const map = this.#mapOf(to, from);
    const name = `cp.async.bulk.tensor.${to.index.length}d.global.shared::cta.tile.bulk_group`;
    code.emit(`${name} [${map}, {${this.#coordinates(to)}}], ${this.#linear(from)}`);
    this.#parts.counts.tensorCopies++;
  }

  #coordinates(tile: Tile): string {
    const { scope } = this.#context;
    return tile.index
      .toReversed()
      .map((e) => scope.register(e, 32))
      .join(", ");
  }

  /** The address of a tile as the copy engine has it: swizzles are its own business. */
  #linear(tile: Tile): string {
    const place = this.#memory(tile);
    const address = this.#context.address(place, tile.index);
    return spellAddress(this.#context, { ...place, swizzleBytes: 0 }, address);
  }

  /** The descriptor parameter for boxes of a buffer that lie in a shared buffer as they are stored. */
  #mapOf(global: Tile, shared: Tile): Operand {
    const [far, near] = [this.#memory(global), this.#memory(shared)];
    const extents = shared.extents;
    const inner = near.buffer.shape.slice(near.buffer.shape.length - extents.length + 1);
    const isWhole = inner.every((e, i) => ix.constantValue(e) === extents[i + 1]);
    const innerBytes = (extents.at(-1) ?? 1) * this.#context.elementBytes(near.buffer);
    if (!isWhole) this.#context.refuse(`a box in ${shared.buffer} that is not contiguous`);
    if (near.swizzleBytes > 0 && innerBytes !== near.swizzleBytes) {
      this.#context.refuse(`boxes of ${innerBytes} bytes a row under swizzle ${near.swizzleBytes}`);
    }
    if (innerBytes % 16 !== 0 || extents.some((e) => e > 256)) {
      this.#context.refuse(
        `a box of [${extents.join(", ")}] with rows of ${innerBytes} bytes`,
        "use boxes of at most 256 elements an axis and rows of a multiple of 16 bytes",
      );
    }
    const { shape, dtype } = far.buffer;
    const bytes = this.#context.elementBytes(far.buffer);
    const strides = rowMajorStrides(shape).map((e) => ix.mul(bytes, e));
    const rank = shape.length;
    const box = [...new Array<number>(rank - extents.length).fill(1), ...extents].toReversed();
    return this.#parts.tensorMap({
      kind: "tensorMap",
      name: global.buffer,
      dtype,
      dims: shape.toReversed(),
      strides: strides.slice(0, -1).toReversed(),
      box,
      swizzleBytes: near.swizzleBytes,
    });
  }
}

/** Whether a tile of shared memory has panels, of rows that are neighbours. */
function isTurned({ extents }: Tile): boolean {
  return extents.length === 3;
}

function list(registers: readonly Operand[]): string {
  return `{${registers.join(", ")}}`;
}

function groupKindOf(intrinsic: string): GroupKind {
  if (intrinsic.startsWith("wgmma.")) return "wgmma";
  return intrinsic === "cp.async" ? "cp.async" : "bulk";
}
