import { expect, test } from "vitest";
import {
  type AccessFigures,
  type LoopFigures,
  packedAccess,
} from "../schedule/states/nest-figures.ts";
import { targets } from "../target/index.ts";
import { type LevelTraffic, Traffic } from "./traffic.ts";

const target = targets.get("x64-avx2")!;

/** A matrix of f32 of which a loop each moves the rows and the columns. */
function matrix(use: AccessFigures["use"], rows: number, columns: number): AccessFigures {
  const axis = (extent: number, loop: number) => ({
    extent,
    steps: Float64Array.from([0, 1], (l) => (l === loop ? 1 : 0)),
    divisor: 1,
    wraps: false,
    open: false,
  });
  return {
    ...{ tensor: "x", use, role: "input", bytes: 4, widening: 0, scattered: false, guarded: false },
    axes: [axis(rows, 0), axis(columns, 1)],
    strides: [columns, 1],
    guardLoops: [],
  };
}

/** Of its loops. */
function extentsOf({ axes }: AccessFigures): readonly number[] {
  return axes.map((a) => a.extent);
}

/** Columns in tiles outermost, all rows in each: every trip of the inner loop is in another row. */
function byColumns(access: AccessFigures, width: number): readonly LevelTraffic[] {
  const [rows, columns] = access.axes.map((a) => a.extent) as [number, number];
  const loops: readonly LoopFigures[] = [
    { origin: 1, unit: width, trips: columns / width, mode: "serial" },
    { origin: 0, unit: 1, trips: rows, mode: "serial" },
    { origin: 1, unit: 1, trips: width, mode: "vector" },
  ];
  return new Traffic([access], extentsOf(access), target).of(loops);
}

test("rows that begin anywhere in a line touch more lines than those that begin with one", () => {
  const [aligned] = byColumns(matrix("read", 4096, 256), 16);
  const [ragged] = byColumns(matrix("read", 4096, 264), 8);
  expect(aligned!.bytes).toBe(4096 * 256 * 4);
  // A vector of 32 bytes at multiples of 32 lies in one line, which the next tile fetches again.
  expect(ragged!.bytes).toBeCloseTo(2 * 4096 * 264 * 4);
  const [odd] = byColumns(matrix("read", 4096, 250), 10);
  expect(odd!.bytes / (4096 * 250 * 4)).toBeGreaterThan(1.5);
});

test("a core waits for what it reads, not for what it writes", () => {
  const read = byColumns(matrix("read", 4096, 264), 8);
  const write = byColumns(matrix("write", 4096, 264), 8);
  expect(read[0]!.scattered).toBeGreaterThan(0);
  expect(write.map((level) => level.scattered)).toEqual(write.map(() => 0));
  expect(write[0]!.bytes).toBeGreaterThan(0);
});

test("single lines whose steps meet few sets are waited for beyond the second cache", () => {
  const share = (columns: number): number => {
    const levels = byColumns(matrix("read", 4096, columns), 16);
    return levels[1]!.scattered / levels[1]!.bytes;
  };
  expect(share(256)).toBe(1);
  expect(share(272)).toBeLessThan(0.5);
});

test("what is read from end to end is not waited for", () => {
  const access = matrix("read", 4096, 256);
  const loops: readonly LoopFigures[] = [
    { origin: 0, unit: 1, trips: 4096, mode: "serial" },
    { origin: 1, unit: 8, trips: 32, mode: "serial" },
    { origin: 1, unit: 1, trips: 8, mode: "vector" },
  ];
  const levels = new Traffic([access], extentsOf(access), target).of(loops);
  expect(levels.map((level) => level.scattered)).toEqual([0, 0, 0]);
});

test("a block that sticks out moves what is left of its loop", () => {
  const access = matrix("read", 4096, 240);
  const rows = { origin: 0, unit: 1, trips: 4096, mode: "serial" } as const;
  const lanes = { origin: 1, unit: 1, trips: 8, mode: "vector" } as const;
  const bytes = (block: number): number => {
    const columns: readonly LoopFigures[] = [
      { origin: 1, unit: block, trips: Math.ceil(240 / block), mode: "serial" },
      rows,
      { origin: 1, unit: 8, trips: block / 8, mode: "serial" },
      lanes,
    ];
    return new Traffic([access], extentsOf(access), target).of(columns)[0]!.bytes;
  };
  // Two blocks and a half of 96, three of 80.
  expect(bytes(96)).toBeCloseTo((240 / 96) * (bytes(80) / 3) * (96 / 80));
});

test("runs that lie apart are waited for, unless a cache comes to hold what lies between", () => {
  const access = matrix("read", 1024, 256);
  const loops = (rows: number): readonly LoopFigures[] => [
    { origin: 0, unit: rows, trips: 1024 / rows, mode: "serial" },
    { origin: 1, unit: 16, trips: 16, mode: "serial" },
    { origin: 0, unit: 1, trips: rows, mode: "serial" },
    { origin: 1, unit: 1, trips: 16, mode: "vector" },
  ];
  const near = (rows: number): number =>
    new Traffic([access], extentsOf(access), target).of(loops(rows))[0]!.scattered;
  // 16 rows are 16 KiB, 256 of them more than the nearest cache holds.
  expect(near(256)).toBeGreaterThan(10 * near(16));
});

test("panels are read from end to end, however many vectors wide", () => {
  // 2 MiB in panels of 32 columns, one behind the other; all of it again in each trip outside.
  const whole = matrix("read", 2048, 256);
  const panels = packedAccess(whole, { tensor: "x", axis: 1, width: 32 });
  const loops: readonly LoopFigures[] = [
    { origin: 1, unit: 32, trips: 8, mode: "serial" },
    { origin: 0, unit: 2, trips: 1024, mode: "serial" },
    { origin: 0, unit: 1, trips: 2, mode: "unroll" },
    { origin: 1, unit: 8, trips: 4, mode: "unroll" },
    { origin: 1, unit: 1, trips: 8, mode: "vector" },
  ];
  const behind = (access: AccessFigures): readonly LevelTraffic[] =>
    new Traffic([access], extentsOf(whole), target).of(loops);
  for (const [level, { bytes, scattered }] of behind(panels).entries()) {
    expect(scattered).toBe(0);
    expect(bytes).toBe(behind(whole)[level]!.bytes);
  }
  expect(behind(whole)[0]!.scattered).toBeGreaterThan(0);
});

/** A map in blocks of channels, which a 3x3 convolution reads by positions, rows or columns of it outermost. */
function byPositions(outer: "rows" | "columns"): readonly LevelTraffic[] {
  const [blocks, height, width] = [32, 450, 160] as const;
  // Loops: row, column, block, row of the kernel, channel of the block, column of the kernel.
  const axis = (extent: number, ...loops: readonly number[]) => ({
    extent,
    steps: Float64Array.from({ length: 6 }, (_, l) => (loops.includes(l) ? 1 : 0)),
    divisor: 1,
    wraps: false,
    open: false,
  });
  const access: AccessFigures = {
    ...{ tensor: "x", use: "read", role: "input", bytes: 4, widening: 0, scattered: false },
    axes: [axis(blocks, 2), axis(height, 0, 3), axis(width, 1, 5), axis(4, 4)],
    strides: [height * width * 4, width * 4, 4, 1],
    guarded: false,
    guardLoops: [],
  };
  const rows: LoopFigures = { origin: 0, unit: 1, trips: height - 2, mode: "serial" };
  const columns: LoopFigures = { origin: 1, unit: 4, trips: width / 4, mode: "serial" };
  const loops: readonly LoopFigures[] = [
    ...(outer === "rows" ? [rows, columns] : [columns, rows]),
    { origin: 2, unit: 1, trips: blocks, mode: "serial" },
    { origin: 3, unit: 1, trips: 3, mode: "serial" },
    { origin: 4, unit: 1, trips: 4, mode: "serial" },
    { origin: 5, unit: 1, trips: 3, mode: "serial" },
    { origin: 1, unit: 1, trips: 4, mode: "unroll" },
  ];
  const extents = [height - 2, width - 2, blocks, 3, 4, 3];
  return new Traffic([access], extents, targets.get("wasm")!).of(loops);
}

test("columns of a map too large for a cache jump to another page with each run, rows go on", () => {
  const beyond = (outer: "rows" | "columns"): number =>
    byPositions(outer)
      .slice(1)
      .reduce((n, { jumps }) => n + jumps, 0);
  expect(beyond("columns")).toBeGreaterThan(20 * beyond("rows"));
  // Into the nearest cache nothing is fetched ahead.
  expect(byPositions("rows")[0]!.jumps).toBeGreaterThan(0);
});
