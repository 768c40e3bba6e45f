/** Kernels with tiles of rows have forms for one row and for few, and compute the same whatever the number of rows is. */
import { describe, expect, it } from "vitest";
import { runProgram } from "../interp/program.ts";
import { printProgram } from "../program/program-text.ts";
import { validateProgram } from "../program/validate/validate.ts";
import { parseRegion } from "../region/nest-reader.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { ScheduledRegion } from "../schedule/scheduled-region.ts";
import { evaluate } from "../semantics/index-expr.ts";
import type { Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { fewRows } from "./few-rows.ts";
import { lowerRegionProgram } from "./region-program.ts";

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map((d) => `${d.code} ${d.message} ${d.at}`).join("\n"));
}

const streams = { sums: 8, streams: true };

const tile = `split S0:i by 4 -> i_o i_r unroll S0:i_r
  split S0:j by 8 -> j_o j_i split S0:j_i by 4 -> j_u j_l unroll S0:j_u vectorize S0:j_l`;
const columnsFirst = `${tile} reorder S0:(j_o, i_o, k, i_r, j_u, j_l)`;
const rowsFirst = `${tile} reorder S0:(i_o, j_o, k, i_r, j_u, j_l)`;

/** Rows of x, as many as `rows` says, by `columns` columns of 12 terms. */
function product(rows: string, columns: number, directives: string): ScheduledRegion {
  const region = take(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      symbol N in 0..21 input x : f32[${rows}, 12] weight w : f32[12, ${columns}] weight b : f32[${columns}]
      output y : f32[${rows}, ${columns}]
      statement S0 "" {i in ${rows}, j in ${columns}, reduce k in 12} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) finish (add(_0, b[j])) } }`),
  );
  const schedule = take(parseSchedule(`schedule "r" for "wasm" { ${directives} }`));
  return take(applySchedule(region, schedule));
}

describe("few rows", () => {
  it.each([
    ["columns outside", "N", 64, columnsFirst],
    ["rows outside", "N", 64, rowsFirst],
    ["columns dealt out", "N", 96, `${columnsFirst} parallelize S0:j_o`],
    ["a multiple of rows", "3*N", 48, columnsFirst],
    ["columns that are no whole tiles", "N", 60, columnsFirst],
  ])("%s: any number of rows is computed", (_, rows, columns, directives) => {
    const scheduled = product(rows, columns, directives);
    const { program } = take(lowerRegionProgram(scheduled, targets.get("wasm")!));
    take(validateProgram(program));
    const rng = new Rng(columns);
    const values = (n: number): Float32Array =>
      Float32Array.from({ length: n }, () => rng.integer(-4, 4));
    const [w, b] = [values(12 * columns), values(columns)];
    for (const n of [0, 1, 2, 3, 4, 5, 9, 16, 17, 21]) {
      const count = rows === "N" ? n : 3 * n;
      const x = values(12 * count);
      const contents = new Map(
        Object.entries({ x, w, b }).map(([name, v]) => [name, new Uint8Array(v.buffer.slice(0))]),
      );
      const given = { parameters: { N: n }, contents, threads: 3, seed: n };
      const run = runProgram(program, given);
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const y = new Float32Array(run.contents.get("y")!.slice().buffer, 0, count * columns);
      const want = (at: number): number => {
        const [i, j] = [Math.floor(at / columns), at % columns];
        return (
          b[j]! +
          w.reduce(
            (s, v, p) => (p % columns === j ? s + v * x[12 * i + Math.floor(p / columns)]! : s),
            0,
          )
        );
      };
      expect([...y]).toEqual(Array.from(y, (_, at) => want(at)));
    }
  });

  it.each([
    [
      "one row",
      0,
      1,
      ["j_o 2 serial", "k 12 serial", "next 4 unroll", "j_u 2 unroll", "j_l 4 vector"],
    ],
    [
      "rows in twos",
      ...[1, 2],
      ["j_o 4 serial", "i_o floorDiv(N + 1, 2) serial", "k 12 serial"].concat([
        "next 2 unroll",
        "j_u 2 unroll",
        "i_r 2 unroll",
        "j_l 4 vector",
      ]),
    ],
  ] as const)("%s: tiles of columns that lie apart, each point once", (_, which, rows, loops) => {
    for (const directives of [columnsFirst, rowsFirst]) {
      const { scheduled } = fewRows(product("N", 64, directives).statements[0]!, streams)[which]!;
      expect(scheduled.loops.map((l) => `${l.name} ${l.extent.key} ${l.mode}`)).toEqual(loops);
      const points = new Set<string>();
      const trips = 8 / (rows === 1 ? 4 : 2);
      for (let at = 0; at < 64 * rows; at++) {
        const [column, row] = [Math.floor(at / rows), at % rows];
        const places = {
          ...{
            i_o: 3,
            i_r: row,
            j_o: (column >> 3) % trips,
            next: Math.floor((column >> 3) / trips),
          },
          ...{ j_u: (column >> 2) & 1, j_l: column & 3 },
        };
        const bound = new Map(Object.entries(places));
        const [i, j] = ["i", "j"].map((l) => evaluate(scheduled.index.get(l)!, bound));
        expect([i, j]).toEqual([rows === 1 ? 0 : 6 + row, column]);
        points.add(`${i} ${j}`);
      }
      expect(points.size).toBe(64 * rows);
    }
  });

  it.each([
    ["in machine code", 64, false],
    ["where columns are no whole tiles", 60, true],
  ])("are one row alone, with neighbouring tiles, %s", (_, columns, areStreams) => {
    const limits = { ...streams, streams: areStreams };
    const [alone, ...others] = fewRows(product("N", columns, columnsFirst).statements[0]!, limits);
    expect(others).toEqual([]);
    expect(alone!.when.expr.key).toBe("-N + 1");
    expect(alone!.scheduled.index.get("j")!.key).toBe("j_l + 32*j_o + 4*j_u + 8*next");
  });

  it("are one row, and up to four tiles of them", () => {
    const forms = fewRows(product("N", 64, columnsFirst).statements[0]!, streams);
    expect(forms.map((f) => f.when.expr.key)).toEqual(["-N + 1", "-N + 16"]);
  });

  it.each([
    ["rows are known", product("5", 64, columnsFirst)],
    ["rows are dealt out", product("N", 64, `${rowsFirst} parallelize S0:i_o`)],
    ["tiles of columns are odd", product("N", 56, columnsFirst)],
    ["rows are no tile", product("N", 64, columnsFirst.replace("unroll S0:i_r", ""))],
  ])("have no form of their own where %s", (_, scheduled) => {
    expect(fewRows(scheduled.statements[0]!, streams)).toEqual([]);
  });

  it("are branches of the kernel", () => {
    const { program } = take(
      lowerRegionProgram(product("N", 64, columnsFirst), targets.get("wasm")!),
    );
    expect(printProgram(program).match(/if -N \+ (1|16) >= 0 \{/g)).toEqual([
      "if -N + 1 >= 0 {",
      "if -N + 16 >= 0 {",
    ]);
  });
});
