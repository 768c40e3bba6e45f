/** Coverage by sets along axes: what is said to be covered is, element by element; ragged and interleaved parts are. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { constantValue, evaluate } from "../../semantics/index-expr.ts";
import type { Program } from "../program.ts";
import { parseProgram } from "../program-parse.ts";
import type { Statement } from "../statement.ts";
import { coverageBody } from "./launch-view.ts";
import { coversByAxes } from "./product-cover.ts";
import { validateProgram } from "./validate.ts";

function programOf(shape: string, grid: string, threads: number, ...bodies: string[]): string {
  const kernels = bodies.map(
    (body, i) => `kernel k${i} region "r${i}" {
    grid blocks (${grid})
    role main copies 1 threads ${threads} as t {
      ${body}
    }
  }`,
  );
  return `program cover for "sm_80" {
  buffer z : output memory f32 [${shape}] source "z"
  ${kernels.join("\n  ")}
  tasks {
    ${bodies.map((_, i) => `launch k${i} after previous`).join("\n    ")}
  }
}
`;
}

function parsed(text: string): Program {
  const program = parseProgram(text);
  if (!program.ok) throw new Error(`${program.diagnostics[0]!.message}\n${text}`);
  return program.value;
}

function codes(text: string): readonly string[] {
  const valid = validateProgram(parsed(text));
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

function bodyOf(program: Program): readonly Statement[] {
  return program.kernels.flatMap((k) => coverageBody(k, "z"));
}

function isCovered(text: string): boolean {
  const program = parsed(text);
  return coversByAxes(bodyOf(program), program.buffers[0]!);
}

/** Every element that the statements write, by running them. */
function written(body: readonly Statement[], shape: readonly number[]): number {
  const marks = new Set<string>();
  const run = (list: readonly Statement[], env: ReadonlyMap<string, number>): void => {
    const at = (e: Parameters<typeof evaluate>[0]) => evaluate(e, env as never);
    for (const s of list) {
      if (s.kind === "for")
        for (let i = 0; i < at(s.extent); i++) run(s.body, new Map(env).set(s.variable, i));
      else if (s.kind === "if")
        run(
          s.conditions.every((c) => (c.kind === "zero" ? at(c.expr) === 0 : at(c.expr) >= 0))
            ? s.then
            : s.else,
          env,
        );
      else if (s.kind === "store") {
        const index = s.index.map(at);
        if (index.every((n, axis) => n >= 0 && n < shape[axis]!)) marks.add(index.join());
      }
    }
  };
  run(body, new Map());
  return marks.size;
}

const ragged = (length: number, lost = 0) =>
  programOf(
    `3, ${length}, 5`,
    "p < 7, r < 3, c < 3",
    16,
    [0, 1, 2, 3]
      .map((n) => {
        const at = `32*p + 4*floorDiv(t, 2) + ${n}`;
        const guard = `if -32*p - 4*floorDiv(t, 2) + ${length - 1 - lost - n} >= 0`;
        const column = `2*c + mod(t, 2)`;
        return `if -2*c - mod(t, 2) + 4 >= 0 { ${guard} { store z[r, ${at}, ${column}] = f32(1) } }`;
      })
      .join("\n"),
  );

describe("coverage by sets along axes", () => {
  it("ragged ends and phases of a stride cover, and what they leave out is seen", () => {
    for (const length of [195, 201, 221, 223, 224]) expect(isCovered(ragged(length))).toBe(true);
    for (const length of [195, 221]) expect(isCovered(ragged(length, 1))).toBe(false);
    const phase = (n: number, count: number) =>
      `if -8*c - t + ${count - 1} >= 0 {
        store z[floorDiv(b, 15), mod(floorDiv(b, 5), 3), mod(b, 5), 16*c + 2*t + ${n}] = f32(1)
      }`;
    const phases = (odd: number) =>
      programOf("7, 3, 5, 161", "b < 105, c < 11", 8, phase(0, 81), phase(1, odd));
    expect(isCovered(phases(80))).toBe(true);
    expect(isCovered(phases(79))).toBe(false);
  });

  it("both ways through a branch, and loops that another axis ends, cover", () => {
    const rows = (end: number) => `if b - 1 >= 0, -b + 8 >= 0, t - 1 >= 0 {
        for i < min(-8*c + ${end}, 8) { store z[b, 8*c + i, t] = f32(1) }
      } else {
        for i < min(-8*c + ${end}, 8) { store z[b, 8*c + i, t] = f32(2) }
      }`;
    const shape = "11, 29, 6";
    expect(codes(programOf(shape, "b < 11, c < 4", 6, rows(29)))).toEqual([]);
    expect(codes(programOf(shape, "b < 11, c < 4", 6, rows(28)))).toEqual(["PRG020"]);
    expect(isCovered(programOf(shape, "b < 11, c < 4", 6, rows(29)))).toBe(true);
  });

  it("a remainder of an axis that it does not divide, and loops of none or more trips, cover", () => {
    const odd = (end: number) => `if mod(b, 2) == 0 {
        for i < min(max(-4*mod(t, 2) - 8*c + ${end}, 0), 4) {
          store z[b, 8*c + 4*mod(t, 2) + i, floorDiv(t, 2)] = f32(1)
        }
      } else {
        for i < 4 { if -4*mod(t, 2) - 8*c - i + 28 >= 0 { store z[b, 8*c + 4*mod(t, 2) + i, floorDiv(t, 2)] = f32(2) } }
      }`;
    expect(isCovered(programOf("11, 29, 3", "b < 11, c < 4", 6, odd(29)))).toBe(true);
    expect(isCovered(programOf("11, 29, 3", "b < 11, c < 4", 6, odd(28)))).toBe(false);
  });

  it("is never said of statements that leave an element out", () => {
    const term = fc.constantFrom(
      ...["t", "a", "b", "2*a", "3*b", "mod(t, 4)", "floorDiv(t, 4)", "4*floorDiv(t, 2)"],
      ...["2*mod(t, 2)", "mod(floorDiv(a, 2), 3)", "mod(t, 3)", "-a", "i", "2*i", "5*a"],
      ...["floorDiv(3*floorDiv(t, 4) + 2, 4)", "floorDiv(a + 2*b, 3)"],
    );
    const sum = fc
      .tuple(fc.array(term, { minLength: 1, maxLength: 3 }), fc.integer({ min: 0, max: 2 }))
      .map(([terms, n]) => [...terms, String(n)].join(" + "));
    const store = fc.tuple(sum, sum).map(([x, y]) => `store z[${x}, ${y}] = f32(1)`);
    const guard = fc
      .tuple(term, fc.integer({ min: 0, max: 9 }), fc.boolean())
      .map(([e, n, isEnd]) => (isEnd ? `${n} - (${e}) >= 0` : `${e} - ${n} == 0`));
    const guarded = fc
      .tuple(store, fc.array(guard, { maxLength: 2 }), fc.option(store))
      .map(([s, conditions, other]) =>
        conditions.length === 0
          ? s
          : `if ${conditions.join(", ")} { ${s} }${other ? ` else { ${other} }` : ""}`,
      );
    const body = fc.array(guarded, { minLength: 1, maxLength: 4 });
    const size = fc.integer({ min: 1, max: 5 });
    let covered = 0;
    fc.assert(
      fc.property(body, size, size, (stores, m, n) => {
        const text = programOf(
          `${m}, ${n}`,
          "a < 6, b < 2",
          8,
          `for i < 3 {\n${stores.join("\n")}\n}`,
        );
        const program = parsed(text);
        const all = bodyOf(program);
        const shape = program.buffers[0]!.shape.map((e) => constantValue(e)!);
        if (!coversByAxes(all, program.buffers[0]!)) return;
        covered++;
        expect(written(all, shape), text).toBe(m * n);
      }),
      { numRuns: 400 },
    );
    expect(covered).toBeGreaterThan(20);
  });
});
