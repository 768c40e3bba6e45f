/**
 * Tests that take turns: of the files below, which hold many tests of one kind and take most of the time, a run with
 * TEST_TURN=N skips all but every fourth test, another quarter for the next N; `.ci/run` counts commits. Without it,
 * as in `npm test` by hand, all tests run. The tests of these files must not need each other.
 */
import { relative } from "node:path";
import { beforeEach } from "vitest";

const takingTurns = new Set([
  "src/affine/properties.test.ts",
  "src/commands/emitted-kernels.test.ts",
  "src/emit/x64/upper-halves.test.ts",
  "src/graph/transforms/fold-transposes.test.ts",
  "src/graph/transforms/radix-select.test.ts",
  "src/lower/attention/lower-attention.test.ts",
  "src/lower/attention/open-attention.test.ts",
  "src/lower/product/lower-product.test.ts",
  "src/lower/product/open-products.test.ts",
  "src/lower/product/turned-operands.test.ts",
  "src/lower/rows/lower-rows.test.ts",
  "src/lower/rows/row-scan.test.ts",
  "src/schedule/blocks/split-scatters.test.ts",
  "src/schedule/products/ended-parts.test.ts",
  "src/schedule/products/prologues.test.ts",
  "src/schedule/products/split-products.test.ts",
  "src/schedule/rows/split-scans.test.ts",
  "test/differential/integer-products.test.ts",
  "test/differential/lowering.test.ts",
  "test/differential/peer-ops.test.ts",
  "test/differential/recurrent-peers.test.ts",
  "test/differential/resize-passes.test.ts",
  "test/differential/sampling.test.ts",
  "test/differential/top-k-selection.test.ts",
]);

const [turn, turns] = [process.env.TEST_TURN, 4];

if (turn !== undefined) {
  beforeEach(({ task, skip }) => {
    const file = relative(process.cwd(), task.file.filepath).replaceAll("\\", "/");
    if (takingTurns.has(file))
      skip((turnOf(task.name) + Number(turn)) % turns !== 0, "not its turn");
  });
}

/** Of a name, by all of its letters. */
function turnOf(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (Math.imul(hash, 31) + letter.codePointAt(0)!) | 0;
  return (hash >>> 7) % turns;
}
