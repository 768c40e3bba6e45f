import { describe, expect, it } from "vitest";
import type { DType } from "../semantics/dtype.ts";
import { onlineSoftmaxMonoid } from "../semantics/monoids.ts";
import { parseNests, parseRegion, parseStatement } from "./nest-reader.ts";
import { canonicalStatement, printNests, printRegion, printStatement } from "./nest-text.ts";

const tensors = new Map(
  Object.entries<DType>({
    x: "f32",
    w: "f32",
    b: "f32",
    y: "f32",
    idx: "i64",
    table: "f32",
    wide: "i64",
  }).map(([name, dtype]) => [name, { dtype }]),
);

/** The text reads back and prints the same. */
function check(text: string): void {
  const parsed = parseStatement(text, tensors);
  if (!parsed.ok) throw new Error(parsed.diagnostics[0]!.message);
  expect(printStatement(parsed.value)).toBe(text);
  expect(canonicalStatement(parsed.value)).toEqual(parsed.value);
}

describe("statements", () => {
  it("a contraction with an epilogue", () =>
    check(`statement S0 "fc1" {i in M, j in 3072, reduce k in 768} {
  y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
    finish (max(add(_0, b[j]), f32(0)))
}
`));

  it("guards, padding and a domain cut short", () =>
    check(`statement S1 "conv \\"a\\"" {h in H, reduce r in 3} where H - h - 2 >= 0 && h - r == 0 {
  y[h] = reduce<max, f32, exact>((x[h + r - 1] if h + r - 1 >= 0 else -inf))
}
`));

  it("indices from a tensor, several writes, updates in place", () =>
    check(`statement S2 "gather" {i in N, scan c in 4} {
  index v0 in 100 checked wraps = idx[i]
  index v1 in N proved = (wide[v0] if i - 1 >= 0 else -1)
  y[v0, c] by add, table[i] = (table[v0, c], cast<f32>(index<i64>(v1)))
}
`));

  it("tuple monoids", () =>
    check(`statement S3 "attention" {i in N, reduce j in N} {
  y[i] = reduce<onlineSoftmax, f32, f32, f32, reassociates>(x[i, j], f32(1), w[j])
    finish (div(_2, _1))
}
`));

  it("no loops at all", () =>
    check(`statement S4 "" {} {
  y[] = (exp(x[]))
}
`));

  it.each([
    ["a tensor that is not declared", "{i in 2} { y[i] = (q[i]) }"],
    ["an unknown monoid", "{reduce i in 2} { y[] = reduce<median, f32, exact>(x[i]) }"],
    ["a monoid over wrong types", "{reduce i in 2} { y[] = reduce<sum, f32, f32, exact>(x[i]) }"],
    ["a condition that compares with 1", "{i in 2} where i >= 1 { y[i] = (x[i]) }"],
    ["an unknown combination", "{i in 2} { y[i] by or = (x[i]) }"],
    ["text behind the end", "{i in 2} { y[i] = (x[i]) } }"],
  ])("refuses %s", (_, rest) => {
    const parsed = parseStatement(`statement S "" ${rest}`, tensors);
    expect(parsed).toMatchObject({ ok: false, diagnostics: [{ code: "TXT001" }] });
  });

  it("prints reads in the order of first use", () => {
    const parsed = parseStatement('statement S "" {i in 2} { y[i] = (sub(x[i], w[i])) }', tensors);
    if (!parsed.ok) throw new Error("does not parse");
    const [x, w] = parsed.value.reads;
    const swapped = {
      ...parsed.value,
      reads: [w!, x!],
      body: parsed.value.body.map((e) =>
        e.kind === "apply"
          ? {
              ...e,
              operands: e.operands.map((o, i) => ({ ...o, index: 1 - i })) as typeof e.operands,
            }
          : e,
      ),
    };
    expect(printStatement(swapped)).toBe(printStatement(parsed.value));
    expect(canonicalStatement(swapped)).toEqual(parsed.value);
  });

  it("keeps the identity of a monoid", () => {
    const text =
      'statement S "" {reduce j in 4} { y[] = reduce<onlineSoftmax, f32, f32, f32, exact>(x[j], f32(1), x[j]) finish (_2) }';
    const parsed = parseStatement(text, tensors);
    expect(parsed.ok && parsed.value.reduction?.monoid).toEqual(onlineSoftmaxMonoid("f32"));
  });
});

describe("programs and regions", () => {
  it("a program with a view and a routine", () => {
    const text = `nests "m" (x) -> (y, z) {
  symbol M in 1..4096
  symbol K in 0..inf
  input x : f32[M, 8]
  intermediate t : f32[8*M]
  output y : f32[8*M]
  output z : i64[K]
  statement S0 "neg" {i0 in 8*M} {
    t[i0] = (neg(x[i0]))
  }
  view y of t
  routine S1 "topK of \\"#1\\"" node 3 (t) -> (z)
}
`;
    const parsed = parseNests(text);
    expect(parsed.ok && printNests(parsed.value)).toBe(text);
  });

  it("a region", () => {
    const text = `region S0 group S0 anchor S0 inlined (S2) epilogue (S1, S3) {
  symbol M in 1..9
  input x : f32[M]
  local t : f32[M]
  statement S0 "neg" {i0 in M} {
    t[i0] = (neg(x[i0]))
  }
}
`;
    const parsed = parseRegion(text);
    expect(parsed.ok && printRegion(parsed.value)).toBe(text);
  });
});
