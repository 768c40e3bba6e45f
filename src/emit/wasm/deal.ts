/**
 * How threads take parts of a launch (program/dealing.ts), as three WebAssembly functions over the control block. The
 * parts are cut into a share for each thread. Of each share a word counts what is claimed, and one word of the
 * launch what is finished; all of them begin with the number of the launch, so that nobody has to reset
 * them: a word of an earlier launch stands for nothing claimed, one of a later launch says that this one is over. A
 * thread claims a quarter of what is left of a share, its own first (guided self-scheduling;
 * Polychronopoulos and Kuck, 1987), and never less than a small part of it.
 */
import { awaitWord, loadWord } from "./barrier.ts";
import { controlBlock, shareBytes, shares } from "./control-block.ts";
import type { FunctionBuilder, FunctionIndex, Local } from "./function-builder.ts";
import type { ModuleBuilder } from "./module-builder.ts";

export interface DealFunctions {
  /** `(thread, threads, launch, extent) -> first part | end of the parts << 32`, or -1 where none is left. */
  readonly claim: FunctionIndex;
  /** `(launch, parts, extent)`: so many parts are finished. */
  readonly finish: FunctionIndex;
  /** `(launch, extent) -> abort word`, once all parts are finished or the run is given up. */
  readonly settle: FunctionIndex;
}

/** A claim is this part of what is left of a share, as a power of two, and not less than that part of the whole. */
const [partOfRest, leastPart] = [2, 5];
const nothing = -1n;

export function emitDealFunctions(module: ModuleBuilder): DealFunctions {
  const words = (count: number) => new Array<"i32">(count).fill("i32");
  return {
    claim: module.function("claim", { params: words(4), results: ["i64"] }, writeClaim).index,
    finish: module.function("finish", { params: words(3), results: [] }, writeFinish).index,
    settle: module.function("settle", { params: words(2), results: ["i32"] }, writeSettle).index,
  };
}

function writeClaim(f: FunctionBuilder): void {
  const [thread, threads, launch, extent] = f.params as [Local, Local, Local, Local];
  const [count, size, share, left] = [
    f.local("i32"),
    f.local("i32"),
    f.local("i32"),
    f.local("i32"),
  ];
  f.get(threads)
    .i32Const(shares)
    .get(threads)
    .i32Const(shares)
    .op("i32.lt_s")
    .op("select")
    .tee(count);
  f.get(extent).op("i32.add").i32Const(1).op("i32.sub").get(count).op("i32.div_u").set(size);
  f.get(thread).get(count).op("i32.rem_u").set(share);
  f.get(count).set(left);
  f.loop((next) => {
    claimOf(f, { launch, extent, size, share });
    f.i32Const(0).get(share).i32Const(1).op("i32.add").tee(share);
    f.get(share).get(count).op("i32.eq").op("select").set(share);
    f.get(left).i32Const(1).op("i32.sub").tee(left).brIf(next);
  });
  f.i64Const(nothing);
}

/** Returns with a part of one share, or with nothing where the launch is over; else goes on. */
function claimOf(
  f: FunctionBuilder,
  at: Readonly<Record<"launch" | "extent" | "size" | "share", Local>>,
): void {
  const { launch, extent, size, share } = at;
  const [length, rest, part] = [f.local("i32"), f.local("i32"), f.local("i32")];
  const [found, now] = [f.local("i64"), f.local("i64")];
  const address = () => f.get(share).i32Const(shareBytes).op("i32.mul");
  f.block((leave) => {
    f.get(extent).get(share).get(size).op("i32.mul").op("i32.sub").tee(length);
    f.get(size).get(length).get(size).op("i32.lt_s").op("select").set(length);
    f.loop((again) => {
      loadWord(f, "abort").if(() => f.i64Const(nothing).op("return"));
      address().memory("i64.atomic.load", controlBlock.claims).set(found);
      newest(f, found, launch).tee(now).i64Const(32n).op("i64.shr_s").op("i32.wrap_i64");
      f.get(launch)
        .op("i32.ne")
        .if(() => f.i64Const(nothing).op("return"));
      f.get(length).get(now).op("i32.wrap_i64").op("i32.sub").tee(rest);
      f.i32Const(0).op("i32.le_s").brIf(leave);
      largest(f, () => f.get(rest).i32Const(partOfRest).op("i32.shr_u"), part);
      largest(f, () => f.get(size).i32Const(leastPart).op("i32.shr_u"), part, part);
      f.get(part).get(rest).get(part).get(rest).op("i32.lt_s").op("select").set(part);
      address().get(found).get(now).get(part).op("i64.extend_i32_u").op("i64.add");
      f.memory("i64.atomic.rmw.cmpxchg", controlBlock.claims);
      f.get(found).op("i64.ne").brIf(again);
      // The first part of the claim is what was claimed before, from where the share begins.
      f.get(share).get(size).op("i32.mul").get(now).op("i32.wrap_i64").op("i32.add").tee(length);
      f.op("i64.extend_i32_u").get(length).get(part).op("i32.add").op("i64.extend_i32_u");
      f.i64Const(32n).op("i64.shl").op("i64.or").op("return");
    });
  });
  f.release(length, rest, part, found, now);
}

/** Sets `into` to what is pushed or to 1, or to `least`, if that is more. */
function largest(f: FunctionBuilder, push: () => void, into: Local, least?: Local): void {
  const value = f.local("i32");
  const other = () => (least ? f.get(least) : f.i32Const(1));
  push();
  f.tee(value);
  other();
  f.get(value);
  other();
  f.op("i32.gt_s").op("select").set(into).release(value);
}

/** The word, or where it is of an earlier launch the one with nothing claimed of this one. */
function newest(f: FunctionBuilder, word: Local, launch: Local): FunctionBuilder {
  const fresh = f.local("i64");
  f.get(word).get(launch).op("i64.extend_i32_u").i64Const(32n).op("i64.shl").tee(fresh);
  f.get(word).get(fresh).op("i64.gt_s").op("select").release(fresh);
  return f;
}

function writeFinish(f: FunctionBuilder): void {
  const [launch, parts, extent] = f.params as [Local, Local, Local];
  const [found, now] = [f.local("i64"), f.local("i64")];
  f.loop((again) => {
    f.i32Const(0).memory("i64.atomic.load", controlBlock.finished).set(found);
    newest(f, found, launch).get(parts).op("i64.extend_i32_u").op("i64.add").set(now);
    f.i32Const(0).get(found).get(now);
    f.memory("i64.atomic.rmw.cmpxchg", controlBlock.finished).get(found).op("i64.ne").brIf(again);
  });
  f.get(now).op("i32.wrap_i64").get(extent).op("i32.eq");
  f.if(() => {
    f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.add", controlBlock.generation).op("drop");
    // A sleeper counts itself before it compares the generation, so one of the two sees the other.
    loadWord(f, "sleeping").if(() => {
      f.i32Const(0).i32Const(-1).memory("memory.atomic.notify", controlBlock.generation).op("drop");
    });
  });
}

function writeSettle(f: FunctionBuilder): void {
  const [launch, extent] = f.params as [Local, Local];
  const generation = f.local("i32");
  const over = f.local("i64");
  f.get(launch).op("i64.extend_i32_u").i64Const(32n).op("i64.shl");
  f.get(extent).op("i64.extend_i32_u").op("i64.or").set(over);
  f.get(extent).i32Const(0).op("i32.gt_s");
  f.if(() => {
    awaitWord(f, generation, () => {
      loadWord(f, "generation").set(generation);
      f.i32Const(0).memory("i64.atomic.load", controlBlock.finished).get(over).op("i64.ge_s");
    });
  });
  loadWord(f, "abort");
}
