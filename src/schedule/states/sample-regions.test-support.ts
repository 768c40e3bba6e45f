/** Regions of several kinds for tests of superpositions and prices. */
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { invariant } from "../../support/invariant.ts";

function parse(text: string): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () { ${text} }`);
  invariant(parsed.ok, () => JSON.stringify(parsed));
  return parsed.value;
}

export const sampleRegions: Readonly<Record<string, Region>> = {
  matmul: parse(`symbol N in 1..40
    input x : f32[N, 64] weight w : f32[64, 300] weight b : f32[300] output y : f32[N, 300]
    statement S0 "" {i in N, j in 300, reduce k in 64} {
      y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
        finish (relu(add(_0, b[j])))
    }`),
  maskedScores: parse(`symbol N in 1..40
    input q : f32[N, 64] input k : f32[64, N] input m : bool[N, N] output y : f32[N, N]
    statement S0 "" {i in N, j in N, reduce d in 64} {
      y[i, j] = reduce<sum, f32, reassociates>(mul(q[i, d], k[d, j]))
        finish (select(m[i, j], _0, f32(-3)))
    }`),
  convolution: parse(`symbol N in 1..4
    input img : f32[N, 3, 10] weight k : f32[24, 3, 3] output c : f32[N, 24, 10]
    statement S0 "" {n in N, oc in 24, ow in 10, reduce ic in 3, reduce kw in 3} {
      c[n, oc, ow] = reduce<sum, f32, reassociates>(
        mul((img[n, ic, ow + kw - 1] if ow + kw - 1 >= 0 && 9 - ow - kw + 1 >= 0 else 0), k[oc, ic, kw]))
    }`),
  grouped: parse(`input x : f32[2, 48, 10] weight w : f32[32, 48] output y : f32[2, 16, 10]
    statement S0 "" {g in 2, j in 16, i in 10, reduce k in 48} {
      y[g, j, i] = reduce<sum, f32, reassociates>(mul(x[g, k, i], w[16*g + j, k]))
    }`),
  maximum: parse(`input x : f32[30, 40, 12] output m : f32[30, 12]
    statement S0 "" {i in 30, j in 12, reduce k in 40} {
      m[i, j] = reduce<max, f32, exact>(x[i, k, j])
    }`),
  rowSum: parse(`input x : f32[30, 96] output m : f32[30]
    statement S0 "" {i in 30, reduce k in 96} {
      m[i] = reduce<sum, f32, reassociates>(exp(x[i, k]))
    }`),
  transpose: parse(`input x : f32[33, 50] output y : f32[50, 33]
    statement S0 "" {i in 50, j in 33} { y[i, j] = (x[j, i]) }`),
  elementwise: parse(`symbol N in 1..500
    input x : f32[N, 12] input b : f32[12] output y : f32[N, 12]
    statement S0 "" {j in 12, i in N} { y[i, j] = (add(x[i, j], b[j])) }`),
};
