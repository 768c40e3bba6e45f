/** Rows of the model table at another batch: those whose files leave it open, at the cases that are one of a kind. */
import type { InputSpec, ModelCase, ModelRow } from "./table.ts";

/** The rows that take a batch, with `count` in it. */
export function atBatch(rows: readonly ModelRow[], count: number): readonly ModelRow[] {
  return rows.flatMap((row) => {
    const { batch, shapes, cases } = row;
    const single = cases.filter((c) => c.inputs.every((input) => sizeOf(input) === 1));
    if (batch === undefined || single.length === 0) return [];
    const sizes = Object.fromEntries(batch.map((name) => [name, String(count)]));
    return [{ ...row, shapes: { ...shapes, ...sizes }, cases: single.map((c) => times(c, count)) }];
  });
}

function times({ name, inputs }: ModelCase, count: number): ModelCase {
  return {
    name: `${count}x${name.replace(/^1x/, "")}`,
    inputs: inputs.map((i) => widened(i, count)),
  };
}

function widened(input: InputSpec, count: number): InputSpec {
  if (input.dims.length === 0) return input;
  return { ...input, dims: input.dims.with(input.batchAxis ?? 0, count) };
}

/** How many of a kind an input has; a scalar is for all of them. */
function sizeOf({ dims, batchAxis = 0 }: InputSpec): number {
  return dims.length === 0 ? 1 : dims[batchAxis]!;
}
