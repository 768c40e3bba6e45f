/**
 * What TASO (SOSP 2019) and Tensat (MLSys 2021) report to find, network by network. Each is looked for:
 * found where one of the rules named here led to a candidate; what no machine takes has its reason.
 * Published results are named, their numbers are of other machines.
 */
import type { Graph } from "../../src/graph/graph.ts";
import { bert, inception, nasRnn, resNext, squeezeNet } from "./networks.ts";

export interface Reported {
  readonly network: string;
  readonly what: string;
  readonly graph: () => Graph;
  /** Rules that do it, any of them; none: it is not looked for. */
  readonly rules: readonly string[];
  /** Why a graph without it is the answer where it is. */
  readonly otherwise: string;
}

export const reported: readonly Reported[] = [
  {
    network: "BERT",
    what: "products of queries, keys and values as one",
    graph: bert,
    rules: ["merge-products"],
    otherwise: "the target's prices call three products as cheap: its tiles fit each",
  },
  {
    network: "BERT",
    what: "the scale of the scores in the weights before them",
    graph: bert,
    rules: ["scalar-out-of-product", "scale-through-product", "scale-into-product"],
    otherwise: "the multiplication is part of a product's epilogue and costs nothing",
  },
  {
    network: "NasRNN",
    what: "products of one operand as one",
    graph: nasRnn,
    rules: ["merge-products"],
    otherwise: "the target's prices call the products as cheap one by one",
  },
  {
    network: "NasRNN",
    what: "the sum of two products as one product of joined operands",
    graph: nasRnn,
    rules: ["sum-of-products"],
    otherwise: "joining the operands costs a copy, and the sum is part of a product's epilogue",
  },
  {
    network: "ResNeXt-50",
    what: "groups of a convolution joined to fewer, wider ones",
    graph: resNext,
    rules: [],
    otherwise:
      "no rule: half the groups are twice the operations, and the nests run groups of any width",
  },
  {
    network: "ResNeXt-50",
    what: "bias and scale in the convolution",
    graph: resNext,
    rules: ["scale-into-convolution", "scale-through-convolution"],
    otherwise: "a scale is part of the convolution's epilogue already",
  },
  {
    network: "Inception",
    what: "parallel convolutions of one size as one",
    graph: inception,
    rules: ["merge-convolutions"],
    otherwise: "the target's prices call the convolutions as cheap one by one",
  },
  {
    network: "Inception",
    what: "a convolution moved behind the concatenation of its operands",
    graph: inception,
    rules: ["concat-of-maps", "map-of-concat", "concat-of-convolutions"],
    otherwise: "what follows a concatenation reads its parts where they are",
  },
  {
    network: "SqueezeNet",
    what: "a kernel of one pixel enlarged, and merged with the one of three beside it",
    graph: squeezeNet,
    rules: ["enlarge-window"],
    otherwise:
      "nine times the operations of the small one are dearer than reading its operand again",
  },
];
