/**
 * What a kernel of streamed tiles consists of (streamed.ts): buffers, counters, and two roles, a producer whose
 * threads bring tiles and warpgroups that multiply. Its blocks make one walk over tiles or several in a row; the
 * ring of stages and its phases go on through all of them.
 */
import type { Buffer, Kernel } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { sumsApart } from "../../schedule/products/apart-sums.ts";
import {
  type ProductForm,
  type ProductSide,
  resultColumns,
  takesRegisters,
} from "../../schedule/products/product-form.ts";
import { variablesOf } from "../../semantics/index-expr.ts";
import { exchangeCounter } from "../cluster-exchange.ts";
import {
  groupThreads,
  onOne,
  phaseCounter,
  registerTile,
  sharedTile,
  shareRegisters,
} from "../tiles.ts";
import { exchangeBuffers } from "./exchanged.ts";
import { type ProductPlan, sharedBuffer } from "./plan.ts";
import {
  copied,
  copiesOf,
  empty,
  exchangedSums,
  full,
  gathered,
  instructionsOf,
  order,
  packed,
  partial,
  partialShape,
  type StreamedProduct,
  type StreamedStage,
  summed,
} from "./streamed.ts";

const warpThreads = 32;
/** Rows of one part of gathered results. */
const groupRows = 64;
/** Of rows of so many elements of 16 bits. */
const gatherSwizzles: Readonly<Record<number, 32 | 64 | 128>> = { 16: 32, 32: 64, 64: 128 };

export interface StreamContext {
  readonly thread: string;
  /** Index variable of a warpgroup that multiplies. */
  readonly copy: string;
  /** Whether a tensor is there before the program begins. */
  readonly isWeight: (tensor: string) => boolean;
  /** What binds the numbers by which operands of a problem are found. */
  readonly picks: readonly Statement[];
}

type StreamParts = Pick<Kernel, "buffers" | "counters" | "roles">;

/** @param consume what a warpgroup does with the tiles of all walks */
export function streamParts(
  plan: ProductPlan,
  walks: readonly StreamedProduct[],
  context: StreamContext,
  consume: readonly Statement[],
): StreamParts {
  const { directive, form } = plan;
  const { thread, copy } = context;
  const copies = copiesOf(plan);
  const shares = takesRegisters(directive, form) ? shareRegisters(copies) : undefined;
  const [few, many] = shares ? shares.map((s) => [s]) : [[], []];
  // Copies of results to memory that are still under way.
  const last: Statement = { kind: "waitGroup", group: copied, pending: 0 };
  const ended = directive.results > 0 ? onOne(thread, [last]) : [];
  return {
    ...partsInMemory(plan),
    roles: [
      {
        name: "producer",
        copies: 1,
        threads: groupThreads,
        threadVariable: thread,
        body: [...few!, ...produce(plan, walks, context)],
      },
      {
        name: "consumer",
        copies,
        threads: groupThreads,
        threadVariable: thread,
        copyVariable: copy,
        body: [...many!, ...consume, ...ended],
      },
    ],
  };
}

function partsInMemory(plan: ProductPlan): Pick<Kernel, "buffers" | "counters"> {
  const { left, right, columns, stages, directive, form } = plan;
  const { teams, cluster, parts, results } = directive;
  const copies = copiesOf(plan);
  const exchanges = parts > 1;
  return {
    buffers: [
      ...[left, right].map((s) => sharedBuffer(plan, s)),
      registerTile(summed, form.sum, [instructionsOf(plan), columns / 2]),
      ...(sumsApart(form) ? [registerTile(partial, "f32", partialShape(plan))] : []),
      ...(results > 0 ? gatherBuffers(plan, copies) : []),
      ...(exchanges ? exchangeBuffers(plan, exchangedSums(plan)) : []),
    ],
    counters: [
      phaseCounter(full, [stages], 1),
      phaseCounter(empty, [stages], (copies / teams) * cluster),
      ...(teams > 1 ? [phaseCounter(order, [teams], copies / teams)] : []),
      ...(exchanges ? [exchangeCounter(copies)] : []),
    ],
  };
}

function produce(
  { form, left, right }: ProductPlan,
  walks: readonly StreamedProduct[],
  { thread, isWeight, picks }: StreamContext,
): readonly Statement[] {
  const both = [
    { name: "left", staged: left },
    { name: "right", staged: right },
  ] as const;
  const stream = (
    own: readonly (typeof both)[number][],
    announces: boolean,
  ): readonly Statement[] => {
    const body = (stage: StreamedStage): readonly Statement[] => [
      ...(announces ? [stage.expect] : []),
      ...own.flatMap(({ name }) => stage[name]),
    ];
    const isGiven = own.some(({ staged }) => isPicked(staged.side, form));
    return [...(isGiven ? picks : []), ...walks.flatMap((w) => w.bring(body))];
  };
  const ready = both.filter(({ staged }) => isWeight(staged.side.access.tensor));
  const [first] = ready;
  if (!first || ready.length > 1) return onOne(thread, stream(both, true));
  // Weights need not wait for what earlier launches make, so they have a thread of their own.
  const others = both.filter((s) => s !== first);
  return [
    ...onOne(thread, stream([first], true)),
    ...onOne(thread, stream(others, false), warpThreads),
  ];
}

/** Whether data says where the side's matrix is. */
function isPicked({ access }: ProductSide, { picks }: ProductForm): boolean {
  const used = variablesOf(...access.index);
  return picks.some((v) => used.has(v.name));
}

/** Parts of the results on their way, and the registers that one matrix store takes. */
function gatherBuffers({ form, directive }: ProductPlan, copies: number): readonly Buffer[] {
  const wide = resultColumns(directive, form);
  const shape = [copies, directive.results, groupRows, wide];
  return [
    sharedTile(gathered, form.result, shape, gatherSwizzles[wide]!),
    registerTile(packed, form.result, [8]),
  ];
}
