/**
 * Subgraphs of control flow: bodies are filled by emitters of their own, then closed together, so that
 * all bodies of a node take the same captured values in the same order.
 */
import type { Graph, ValueId } from "../../../graph/graph.ts";
import type { Emitter, Origin } from "./emitter.ts";
import type { Operand, ValueOperand } from "./operand.ts";

/** A body whose nodes are converted but whose inputs may still grow. */
export interface OpenSubgraph {
  readonly name: string;
  readonly emitter: Emitter;
  readonly inputs: readonly ValueId[];
  readonly outputs: readonly ValueId[];
}

export interface ClosedSubgraphs {
  readonly graphs: readonly Graph[];
  /** Operands that follow the bodies' own inputs. */
  readonly captures: readonly Operand[];
}

/** Gives every body the captures of all. */
export function closeSubgraphs(bodies: readonly OpenSubgraph[], origin: Origin): ClosedSubgraphs {
  const captures: ValueOperand[] = [];
  for (const operand of bodies.flatMap((body) => body.emitter.captured)) {
    const known = captures.some((c) => c.home === operand.home && c.id === operand.id);
    if (!known) captures.push(operand);
  }
  const graphs = bodies.map(({ name, emitter, inputs, outputs }) => {
    const ids = captures.map((operand) => emitter.valueOf(operand, origin));
    return emitter.assembly.finish(name, outputs, [...inputs, ...ids]);
  });
  return { graphs, captures };
}
