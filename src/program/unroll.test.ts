import { expect, test } from "vitest";
import { parseProgram } from "./program-parse.ts";
import { printStatements } from "./program-text.ts";
import { unrollLoops } from "./unroll.ts";

function checkUnroll(body: string, expected: string): void {
  const read = parseProgram(`program p for "t" { kernel k region "r" { grid blocks (b < 1)
    role r copies 1 threads 1 { ${body} } } tasks { } }`);
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  const kernel = unrollLoops(read.value.kernels[0]!);
  expect(printStatements(kernel.roles[0]!.body)).toBe(expected);
}

test("copies get constants for the loop variable and names of their own", () => {
  checkUnroll(
    `for r < 2 unrolled { let v = load.f32 x[i + r] store acc[r] = add(v, load.f32 acc[r]) }`,
    [
      "let v$0 = load.f32 x[i]",
      "store acc[0] = add(v$0, load.f32 acc[0])",
      "let v$1 = load.f32 x[i + 1]",
      "store acc[1] = add(v$1, load.f32 acc[1])",
      "",
    ].join("\n"),
  );
});

test("inner unrolled loops inside serial ones, indices bound by letIndex, hidden names", () => {
  checkUnroll(
    `for k < K { for r < 2 unrolled { index j < 8 checked = load.i32 idx[r]
       let v = f32(0)
       if k >= 0 { let w = v let v = f32(1) store y[j, r] = add(v, w) }
       for j < 2 unrolled { store z[j, r] = v } } }`,
    [
      "for k < K {",
      ...[0, 1].flatMap((r) => [
        `  index j$${r} < 8 checked = load.i32 idx[${r}]`,
        `  let v$${r} = f32(0)`,
        "  if k >= 0 {",
        `    let w = v$${r}`,
        "    let v = f32(1)",
        `    store y[j$${r}, ${r}] = add(v, w)`,
        "  }",
        `  store z[0, ${r}] = v$${r}`,
        `  store z[1, ${r}] = v$${r}`,
      ]),
      "}",
      "",
    ].join("\n"),
  );
});
