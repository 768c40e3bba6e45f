/** Which thread of its warp holds the sum that an iteration of a product adds to: asked of what is lowered. */
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { constantValue, evaluate, variable } from "../../semantics/index-expr.ts";
import { groupThreads } from "../tiles.ts";
import { accumulatorsOf, type ResultPiece } from "./accumulators.ts";
import { type ProductPlan, planProduct } from "./plan.ts";
import { copiesOf, streamedPieces } from "./streamed.ts";

export interface ThreadPlace {
  /** Number of the warp in its block, of those that multiply, and of the thread in it. */
  readonly warp: number;
  readonly thread: number;
}

/** Undefined where no product of the region is the statement. */
export function threadInProduct(
  { products }: ScheduledRegion,
  statement: string,
  point: Readonly<Record<string, number>>,
): ThreadPlace | undefined {
  const product = products.find((p) => p.directive.statement === statement);
  if (!product) return undefined;
  const plan = planProduct(product.form, product.directive);
  const [row, column] = [plan.form.rows, plan.form.columns].map(({ loops }) =>
    loops.reduce((at, l, i) => (i === 0 ? 0 : at * constantValue(l.extent)!) + point[l.name]!, 0),
  ) as [number, number];
  return holderOf(plan, row % plan.rows, column % plan.columns);
}

function holderOf(plan: ProductPlan, row: number, column: number): ThreadPlace | undefined {
  const { pieces, copy, copies, threads } = threadsOf(plan);
  for (let group = 0; group < copies; group++) {
    for (let thread = 0; thread < threads; thread++) {
      const at = new Map([
        [threadName, thread],
        [copy, group],
      ]);
      const holds = ({ row: r, column: c, lanes }: ResultPiece): boolean => {
        if (evaluate(r, at) !== row) return false;
        const first = evaluate(c, at);
        return first <= column && column < first + lanes;
      };
      if (pieces.some(holds)) {
        const number = threads * group + thread;
        return { warp: Math.floor(number / 32), thread: number % 32 };
      }
    }
  }
  return undefined;
}

const threadName = "thread";

interface Threads {
  readonly pieces: readonly ResultPiece[];
  /** Threads of one role's copy, and the variable that counts its copies. */
  readonly threads: number;
  readonly copy: string;
  readonly copies: number;
}

function threadsOf(plan: ProductPlan): Threads {
  const copy = "group";
  if (plan.directive.by !== "wgmma") {
    const pieces = accumulatorsOf(plan, threadName).pieces();
    return { pieces, threads: plan.threads, copy, copies: 1 };
  }
  const pieces = streamedPieces(plan, variable(threadName), variable(copy));
  return { pieces, threads: groupThreads, copy, copies: copiesOf(plan) / plan.directive.teams };
}
