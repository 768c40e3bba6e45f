/**
 * What TASO (SOSP 2019) and Tensat (MLSys 2021) report to find, network by network, with the rules that
 * do it here. Published results are named, their numbers are of other machines.
 */
import type { Graph } from "../../src/graph/graph.ts";
import { bert, inception, nasRnn, resNext, squeezeNet } from "./networks.ts";

export interface Reported {
  readonly network: string;
  readonly what: string;
  readonly graph: () => Graph;
  /** Rules that do it, any of them. */
  readonly rules: readonly string[];
}

export const reported: readonly Reported[] = [
  {
    network: "BERT",
    what: "products of queries, keys and values as one",
    graph: bert,
    rules: ["merge-products"],
  },
  {
    network: "BERT",
    what: "the scale of the scores in the weights before them",
    graph: bert,
    rules: ["scalar-out-of-product", "scale-through-product", "scale-into-product"],
  },
  {
    network: "NasRNN",
    what: "products of one operand as one",
    graph: nasRnn,
    rules: ["merge-products"],
  },
  {
    network: "NasRNN",
    what: "the sum of two products as one product of joined operands",
    graph: nasRnn,
    rules: ["sum-of-products"],
  },
  {
    network: "ResNeXt-50",
    what: "groups of a convolution joined to fewer, wider ones",
    graph: resNext,
    rules: ["join-groups"],
  },
  {
    network: "ResNeXt-50",
    what: "bias and scale in the convolution",
    graph: resNext,
    rules: ["scale-into-convolution", "scale-through-convolution"],
  },
  {
    network: "Inception",
    what: "parallel convolutions of one size as one",
    graph: inception,
    rules: ["merge-convolutions"],
  },
  {
    network: "Inception",
    what: "a convolution moved behind the concatenation of its operands",
    graph: inception,
    rules: ["concat-of-maps", "map-of-concat", "concat-of-convolutions"],
  },
  {
    network: "SqueezeNet",
    what: "a kernel of one pixel enlarged, and merged with the one of three beside it",
    graph: squeezeNet,
    rules: ["enlarge-window"],
  },
];
