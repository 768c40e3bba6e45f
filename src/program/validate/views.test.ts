/** Parts through several views, seen through one: the same elements, and coverage of parts that no one view shows. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { constant, evaluate, variable } from "../../semantics/index-expr.ts";
import { flatIndex } from "../addresses.ts";
import type { Buffer } from "../program.ts";
import { parseProgram } from "../program-parse.ts";
import type { Statement } from "../statement.ts";
import { validateProgram } from "./validate.ts";
import { type Part, refined } from "./views.ts";

const { buffers } = unwrap(`program p for "sm_80" {
  buffer z : output memory f32 [4] source "z"
  tasks {
  }
}
`);

function unwrap(text: string) {
  const program = parseProgram(text);
  if (!program.ok) throw new Error(program.diagnostics[0]!.message);
  return program.value;
}

/** A buffer of some axes, joined where `cuts` says nothing. */
function viewOf(sizes: readonly number[], cuts: readonly boolean[]): Buffer {
  const shape: number[] = [];
  for (const [i, size] of sizes.entries()) {
    if (i === 0 || cuts[i]) shape.push(size);
    else shape.push(shape.pop()! * size);
  }
  return { ...buffers[0]!, shape: shape.map((n) => constant(n)) };
}

function partOf(buffer: Buffer): Part {
  const store = {
    kind: "store",
    buffer: buffer.name,
    index: buffer.shape.map((_, axis) => variable(`i${axis}`)),
  };
  return { body: [store as unknown as Statement], buffer, stores: [] };
}

describe("views", () => {
  it("an element's index along the common axes is the same element", () => {
    const cuts = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 });
    const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(sizes, cuts, cuts, fc.nat(), (axes, first, second, seed) => {
        const parts = [first, second].map((c) => partOf(viewOf(axes, c)));
        const seen = refined(parts)!;
        for (const [n, part] of parts.entries()) {
          const { shape } = part.buffer;
          const env = new Map(shape.map((e, axis) => [`i${axis}`, seed % evaluate(e, new Map())]));
          const [store] = seen[n]!.body as readonly { readonly index: Buffer["shape"] }[];
          const [own, common] = [part.buffer, seen[n]!.buffer].map((b, i) => {
            const index = i === 0 ? shape.map((_, axis) => variable(`i${axis}`)) : store!.index;
            return evaluate(flatIndex(b, index), env);
          });
          expect(common).toBe(own);
          const ends = seen[n]!.buffer.shape.map((e) => evaluate(e, new Map()));
          expect(store!.index.every((e, axis) => evaluate(e, env) < ends[axis]!)).toBe(true);
        }
      }),
    );
  });

  it("there is none of axes that do not divide each other, nor of other lengths", () => {
    const of = (...sizes: readonly number[]) =>
      partOf(
        viewOf(
          sizes,
          sizes.map(() => true),
        ),
      );
    expect(refined([of(4, 6), of(3, 8)])).toBe(undefined);
    expect(refined([of(4, 6), of(4, 5)])).toBe(undefined);
    expect(refined([of(4, 6), of(24), of(2, 12)])).toHaveLength(3);
  });

  it("phases through views with other axes joined cover, and what they leave out is seen", () => {
    const phases = (odd: number) =>
      validateProgram(
        unwrap(`program cover for "sm_80" {
  buffer y : output memory f32 [7, 650, 13] source "y"
  buffer z : scratch memory f32 [7, 65, 10, 13] at scratch + (0)
  buffer z.rows : scratch memory f32 [455, 10, 13] view z
  buffer z.pixels : scratch memory f32 [7, 650, 13] view z
  kernel even region "even" {
    grid blocks (n < 455, q < 5)
    role main copies 1 threads 13 as t { store z.rows[n, 2*q, t] = f32(0) }
  }
  kernel odd region "odd" {
    grid blocks (h < 65, q < 5)
    role main copies 1 threads 13 as t {
      for n < 7 { if -t + ${odd} >= 0 { store z[n, h, 2*q + 1, t] = f32(1) } }
    }
  }
  kernel read region "read" {
    grid blocks (n < 7, p < 650)
    role main copies 1 threads 13 as t {
      store y[n, p, t] = load.f32 z.pixels[n, p, t]
    }
  }
  tasks {
    launch even after previous
    launch odd after previous
    launch read after previous
  }
}
`),
      );
    const whole = phases(12);
    expect(whole.ok ? [] : whole.diagnostics).toEqual([]);
    const left = phases(11);
    expect(left.ok ? [] : left.diagnostics.map((d) => d.code)).toContain("PRG021");
  });
});
