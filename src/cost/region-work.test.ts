import { describe, expect, it } from "vitest";
import { coalesceRegion } from "../region/coalesce.ts";
import type { Region } from "../region/nest.ts";
import { parseRegion } from "../region/nest-reader.ts";
import { symbolRanges } from "../schedule/scheduled-region.ts";
import { sampleRegions } from "../schedule/states/sample-regions.test-support.ts";
import { bodyFlops, compulsoryBytes } from "./region-work.ts";

function region(text: string): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () { ${text} }`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  return parsed.value;
}

const bytesOf = (r: Region): number => compulsoryBytes(r, symbolRanges(r));

describe("bytes that a region cannot do without", () => {
  it.each(Object.keys(sampleRegions))("are the same when the loops of %s are joined", (name) => {
    const source = sampleRegions[name]!;
    expect(bytesOf(coalesceRegion(source).region)).toBe(bytesOf(source));
  });

  it("count a product's operands and result once, however its axes are joined", () => {
    const source = region(`weight w : f32[6, 6, 32, 64] input x : f32[6, 6, 1, 64, 4, 4]
      output y : f32[6, 6, 32, 1, 4, 4]
      statement S0 "" {v in 6, u in 6, o in 32, n in 1, a in 4, b in 4, reduce c in 64} {
        y[v, u, o, n, a, b] = reduce<sum, f32, reassociates>(mul(w[v, u, o, c], x[v, u, n, c, a, b]))
      }`);
    const joined = coalesceRegion(source).region;
    expect(joined.statements[0]!.loops.length).toBeLessThan(6);
    expect(bytesOf(joined)).toBe(4 * 36 * (32 * 64 + 64 * 16 + 32 * 16));
  });

  it("are of a cut tensor the part that is read", () => {
    const cut = region(`input x : f32[16, 100] output y : f32[4, 100]
      statement S0 "" {i in 4, j in 100} { y[i, j] = (x[i * 4 + 1, j]) }`);
    expect(bytesOf(cut)).toBe(4 * 800);
  });

  it("are of a window no more than the tensor", () => {
    const window = region(`input x : f32[10] output y : f32[8]
      statement S0 "" {i in 8, reduce k in 3} { y[i] = reduce<max, f32, exact>(x[i + k]) }`);
    expect(bytesOf(window)).toBe(4 * 18);
  });

  it("are of a table the rows that are asked for", () => {
    const gathered = region(`input t : f32[30000, 64] input at : i64[5] output y : f32[5, 64]
      statement S0 "" {i in 5, j in 64} {
        index r in 30000 checked = at[i]
        y[i, j] = (t[r, j])
      }`);
    expect(bytesOf(gathered)).toBe(4 * 5 * 64 * 2 + 8 * 5);
  });

  it("are of rows that each line of a batch asks for, those of that line", () => {
    const gathered =
      region(`input t : f32[8, 512, 16] input at : i32[8, 50] output y : f32[8, 50, 16]
      statement S0 "" {i in 8, k in 50, j in 16} {
        index r in 512 checked = at[i, k]
        y[i, k, j] = (t[i, r, j])
      }`);
    expect(bytesOf(gathered)).toBe(4 * 8 * 50 * 16 * 2 + 4 * 8 * 50);
  });
});

describe("operations of a region", () => {
  it("are those of its numbers, whatever is converted on the way", () => {
    const product = (dtype: string, read: (access: string) => string): Region =>
      region(`input x : ${dtype}[8, 16] weight w : ${dtype}[16, 8] output y : f32[8, 8]
        statement S0 "" {i in 8, j in 8, reduce k in 16} {
          y[i, j] = reduce<sum, f32, reassociates>(mul(${read("x[i, k]")}, ${read("w[k, j]")})) }`);
    const plain = product("f32", (access) => access);
    const narrow = product("bf16", (access) => `cast<f32>(${access})`);
    expect(bodyFlops(plain.statements[0]!)).toBe(2);
    expect(bodyFlops(narrow.statements[0]!)).toBe(2);
  });
});
