/**
 * Regions as models have them, of any sizes, each with schedules of any factors, legal and not: for
 * tests that legality is decided alike with and without what is known of the class, and for the bench
 * that decides a model of a thousand regions.
 */
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { invariant } from "../../support/invariant.ts";
import type { Rng } from "../../support/rng.ts";
import type { Schedule } from "../directive.ts";
import { parseSchedule } from "../directive-text.ts";

/** `A` to `D` are sizes, `F` and `G` factors. */
interface Kind {
  readonly tensors: string;
  readonly statements: string;
  readonly schedules: readonly string[];
}

const product =
  'statement S0 "" {i in A, j in B, reduce k in C} { t[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) }';
const tiled = "tile S0:(i, j) by (F, G) -> (i0, j0) (i1, j1) reorder S0:(i0, j0, k, i1, j1)";

const kinds: Readonly<Record<string, Kind>> = {
  matmul: {
    tensors: "input x : f32[A, C] input w : f32[C, B] output t : f32[A, B]",
    statements: product,
    schedules: [
      `${tiled} vectorize S0:j1 unroll S0:i1 parallelize S0:i0`,
      `split S0:k by F -> k0 k1 split S0:j by G -> j0 j1 reorder S0:(k0, i, k1, j0, j1) vectorize S0:j1`,
      "split S0:k by F -> k0 k1 vectorize S0:k1",
      "parallelize S0:k",
    ],
  },
  fused: {
    tensors: "input x : f32[A, C] input w : f32[C, B] local t : f32[A, B] output y : f32[A, B]",
    statements: `${product} statement S1 "" {i in A, j in B} { y[i, j] = (relu(t[i, j])) }`,
    schedules: [
      "split S0:i by F -> i0 i1 split S1:i by F -> i0 i1 parallelize S0:i0 parallelize S1:i0 split S0:j by G -> j0 j1 vectorize S0:j1 reorder S0:(i0, i1, j0, k, j1) fuse S0 into S1:i1",
      'fuse S1 into S0:i parallelize S0:i parallelize S1:i place "t" in local at S0:i',
      'split S0:i by F -> i0 i1 split S1:i by F -> i0 i1 fuse S1 into S0:i0 place "t" in local at S0:i0',
      'fuse S1 into S0:i place "t" in local at S0:j',
    ],
  },
  shifted: {
    tensors: "input x : f32[A, C] input w : f32[C, B] local t : f32[A, B] output y : f32[A, B]",
    statements: `${product} statement S1 "" {i in A, j in B} { y[i, j] = ((t[i - 1, j] if i - 1 >= 0 else 0)) }`,
    schedules: [
      "fuse S1 into S0:i",
      "split S0:i by F -> i0 i1 split S1:i by F -> i0 i1 fuse S1 into S0:i1",
      "fuse S1 into S0:i parallelize S0:i parallelize S1:i",
      "split S1:j by G -> j0 j1 vectorize S1:j1",
    ],
  },
  convolution: {
    tensors:
      "input x : f32[C, A, B] input w : f32[D, C, 3, 3] input b : f32[D] output y : f32[D, A, B]",
    statements: `statement S0 "" {o in D, h in A, w in B, reduce c in C, reduce r in 3, reduce s in 3} {
      y[o, h, w] = reduce<sum, f32, reassociates>(mul(
        (x[c, h + r - 1, w + s - 1] if h + r - 1 >= 0 && w + s - 1 >= 0 else 0), w[o, c, r, s]))
        finish (relu(add(_0, b[o]))) }`,
    schedules: [
      "split S0:o by F -> o0 o1 split S0:w by G -> w0 w1 reorder S0:(o0, h, w0, c, r, s, w1, o1) vectorize S0:o1 unroll S0:w1 parallelize S0:o0",
      "split S0:o by F -> o0 o1 reorder S0:(h, o0, w, c, r, s, o1) vectorize S0:o1 parallelize S0:h",
    ],
  },
  softmax: {
    tensors: "input x : f32[A, B] local m : f32[A] local s : f32[A] output y : f32[A, B]",
    statements: `statement S0 "" {i in A, reduce j in B} { m[i] = reduce<max, f32, exact>(x[i, j]) }
      statement S1 "" {i in A, reduce j in B} { s[i] = reduce<sum, f32, reassociates>(exp(sub(x[i, j], m[i]))) }
      statement S2 "" {i in A, j in B} { y[i, j] = (div(exp(sub(x[i, j], m[i])), s[i])) }`,
    schedules: [
      "parallelize S0:i parallelize S1:i parallelize S2:i fuse S0 into S2:i fuse S1 into S2:i split S1:j by F -> j0 j1 vectorize S1:j1 split S2:j by G -> j0 j1 vectorize S2:j1",
      "split S0:i by F -> i0 i1 split S1:i by F -> i0 i1 split S2:i by F -> i0 i1 fuse S0 into S2:i1 fuse S1 into S2:i1 parallelize S0:i0 parallelize S1:i0 parallelize S2:i0",
      "split S2:i by G -> i0 i1 fuse S1 into S0:i parallelize S0:i parallelize S1:i",
    ],
  },
  transpose: {
    tensors: "input x : f32[B, A] output y : f32[A, B]",
    statements: 'statement S0 "" {i in A, j in B} { y[i, j] = (x[j, i]) }',
    schedules: [
      "tile S0:(i, j) by (F, G) -> (i0, j0) (i1, j1) parallelize S0:i0 vectorize S0:j1",
      "reorder S0:(j, i)",
    ],
  },
  elementwise: {
    tensors: "input x : f32[A, B] input b : f32[B] output y : f32[A, B]",
    statements: 'statement S0 "" {i in A, j in B} { y[i, j] = (relu(add(x[i, j], b[j]))) }',
    schedules: [
      "split S0:j by F -> j0 j1 vectorize S0:j1 parallelize S0:i",
      "split S0:j by F -> j0 j1 split S0:j0 by G -> j2 j3 vectorize S0:j1 unroll S0:j3",
      "",
    ],
  },
  rows: {
    tensors: "input x : f32[A, B] output m : f32[A]",
    statements:
      'statement S0 "" {i in A, reduce j in B} { m[i] = reduce<sum, f32, reassociates>(x[i, j]) }',
    schedules: [
      "split S0:j by F -> j0 j1 vectorize S0:j1 parallelize S0:i",
      "split S0:i by F -> i0 i1 reorder S0:(i0, j, i1) vectorize S0:i1",
    ],
  },
  scan: {
    tensors: "input x : f32[A, B] output y : f32[A, B]",
    statements:
      'statement S0 "" {i in A, scan s in B} { y[i, s] = (add(x[i, s], (y[i, s - 1] if s - 1 >= 0 else 0))) }',
    schedules: [
      "parallelize S0:i",
      "split S0:i by F -> i0 i1 reorder S0:(i0, s, i1) vectorize S0:i1",
      "split S0:s by F -> s0 s1 unroll S0:s1",
      "split S0:s by F -> s0 s1 reorder S0:(s1, i, s0)",
      "parallelize S0:s",
    ],
  },
  stencil: {
    tensors: "input x : f32[A, B] output y : f32[A, B]",
    statements:
      'statement S0 "" {scan s in A, i in B} { y[s, i] = (add(x[s, i], (y[s - 1, i + 1] if s - 1 >= 0 && B - 2 - i >= 0 else 0))) }',
    schedules: [
      "split S0:i by F -> i0 i1 vectorize S0:i1",
      "reorder S0:(i, s)",
      "parallelize S0:i",
    ],
  },
  pool: {
    tensors: "input x : f32[C, A, B] output y : f32[C, A, B]",
    statements: `statement S0 "" {c in C, h in A, w in B, reduce r in 2, reduce s in 2} {
      y[c, h, w] = reduce<max, f32, exact>((x[c, 2*h + r, 2*w + s] if A - 2*h - r - 1 >= 0 else -inf)) }`,
    schedules: [
      "split S0:w by F -> w0 w1 reorder S0:(c, h, w0, r, s, w1) vectorize S0:w1 parallelize S0:c",
      "unroll S0:r unroll S0:s parallelize S0:c",
    ],
  },
  gather: {
    tensors: "input x : f32[A, B] input idx : i64[C] output y : f32[C, B]",
    statements: `statement S0 "" {i in C, j in B} {
      index v in A checked wraps = idx[i]
      y[i, j] = (x[v, j]) }`,
    schedules: ["split S0:j by F -> j0 j1 vectorize S0:j1 parallelize S0:i"],
  },
  scatter: {
    tensors: "input x : f32[C, B] input idx : i64[C] output y : f32[A, B]",
    statements: `statement S0 "" {scan i in C, j in B} {
      index v in A checked wraps = idx[i]
      y[v, j] by add = (x[i, j]) }`,
    schedules: [
      "split S0:j by F -> j0 j1 reorder S0:(j0, i, j1) vectorize S0:j1",
      "parallelize S0:i",
    ],
  },
  concat: {
    tensors: "input x : f32[A, B] input z : f32[A, C] output y : f32[A, B + C]",
    statements: `statement S0 "" {i in A, j in B} { y[i, j] = (x[i, j]) }
      statement S1 "" {i in A, j in C} { y[i, j + B] = (z[i, j]) }`,
    schedules: [
      "fuse S0 into S1:i parallelize S0:i parallelize S1:i",
      "split S0:j by F -> j0 j1 vectorize S0:j1 split S1:j by G -> j0 j1 vectorize S1:j1",
    ],
  },
  joined: {
    tensors: "input x : f32[A, B] output y : f32[A * B]",
    statements: 'statement S0 "" {i in A, j in B} { y[B*i + j] = (x[i, j]) }',
    schedules: [
      "parallelize S0:i",
      "split S0:j by F -> j0 j1 vectorize S0:j1 reorder S0:(j0, i, j1)",
    ],
  },
};

export interface DrawnRegion {
  readonly kind: string;
  readonly region: Region;
  readonly schedule: Schedule;
}

export interface DrawnSizes {
  readonly least: number;
  readonly most: number;
  readonly factors: readonly number[];
}

/** A region of the kind whose turn it is, with sizes of its own and one of its schedules. */
export function drawRegion(turn: number, rng: Rng, sizes: DrawnSizes): DrawnRegion {
  const names = Object.keys(kinds);
  const kind = names[turn % names.length]!;
  const { tensors, statements, schedules } = kinds[kind]!;
  const values: Record<string, number> = { F: rng.pick(sizes.factors), G: rng.pick(sizes.factors) };
  for (const name of "ABCD") values[name] = rng.integer(sizes.least, sizes.most);
  const fill = (text: string): string =>
    text.replace(/\b[A-DFG]\b/g, (name) => String(values[name]));
  const name = `R${turn}`;
  const region = parseRegion(
    `region ${name} group ${name} anchor S0 inlined () epilogue () { ${fill(tensors)} ${fill(statements)} }`,
  );
  const schedule = parseSchedule(`schedule "${name}" for "wasm" { ${fill(rng.pick(schedules))} }`);
  invariant(region.ok, () => `${kind}: ${JSON.stringify(region)}`);
  invariant(schedule.ok, () => `${kind}: ${JSON.stringify(schedule)}`);
  return { kind, region: region.value, schedule: schedule.value };
}
