/**
 * Walks the nodes of an ONNX graph in order and converts each through its row of the operator table.
 * Names live in scopes (subgraphs see the names around them; function bodies do not). All problems are
 * collected: after a failed node, what depends on it is skipped, everything else is still converted.
 */

import type { TensorType } from "../../../graph/graph.ts";
import {
  attempt,
  type Diagnostic,
  DiagnosticError,
  type Result,
  reject,
} from "../../../support/diagnostic.ts";
import type { FunctionProto, GraphProto, NodeProto } from "../generated/onnx_pb.ts";
import { type AttributeMap, Attributes } from "./attributes.ts";
import type { Emitter } from "./emitter.ts";
import { type KnownValues, placeWithin } from "./known-values.ts";
import { NodeView } from "./node-view.ts";
import { type Bound, describeBound, isOperand } from "./operand.ts";
import { findOperator, type OperatorRow } from "./operator-row.ts";
import { operatorTables } from "./operator-table.ts";
import { convertStrings, takesStringCodes } from "./string-codes.ts";
import type { OpenSubgraph } from "./subgraph.ts";

/** What a name means; "failed": its node was refused, so its users are skipped. */
type Binding = Bound | "failed";

export class Scope {
  readonly #names = new Map<string, Binding>();
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  find(name: string): Binding | undefined {
    return this.#names.get(name) ?? this.#outer?.find(name);
  }

  /** Whether the name is new in this scope and those around it (ONNX names are assigned once). */
  bind(name: string, binding: Binding): boolean {
    if (this.#names.has(name)) return false;
    this.#names.set(name, binding);
    return true;
  }
}

export interface WalkContext {
  readonly emitter: Emitter;
  /** Operator set version by domain; "" is the default domain. */
  readonly opsets: ReadonlyMap<string, number>;
  readonly functions: ReadonlyMap<string, FunctionProto>;
  readonly diagnostics: Diagnostic[];
  /** Reads tensors of the model: initializers of subgraphs. */
  readonly bindInitializers: (graph: GraphProto, scope: Scope) => void;
  /** Attributes of the function call that is being expanded. */
  readonly call?: AttributeMap;
  /** Nesting of subgraphs and functions. */
  readonly depth: number;
  /** Where the walk is, in the names of KnownValues. */
  readonly place: string;
  readonly known: KnownValues;
  /** Nodes of function bodies so far: functions that call others twice grow exponentially. */
  readonly expanded: { nodes: number };
}

const largestDepth = 24;
const largestProblemCount = 200;
const largestExpansion = 100_000;

/** Converts nodes; results are bound in `scope`, problems appended to the context's diagnostics. */
export function walkNodes(nodes: readonly NodeProto[], scope: Scope, context: WalkContext): void {
  for (const [index, node] of nodes.entries()) {
    if (context.diagnostics.length >= largestProblemCount) return;
    const result = attempt(() => convertNode(node, index, scope, context));
    if (context.known.isDone) return;
    if (result.ok) continue;
    context.diagnostics.push(...result.diagnostics);
    for (const name of node.output) scope.bind(name, "failed");
  }
}

function convertNode(node: NodeProto, index: number, scope: Scope, context: WalkContext): void {
  const label = `${node.name || `#${index}`} (${node.opType})`;
  const at = `node ${JSON.stringify(node.name || `#${index}`)} (${node.domain ? `${node.domain}.` : ""}${node.opType})`;
  const body = context.functions.get(functionKey(node.domain, node.opType));
  const found = body ? undefined : findRow(node, at, context);
  const bindings = node.input.map((name) => (name === "" ? undefined : lookUp(name, scope, at)));
  if (bindings.includes("failed")) {
    for (const name of node.output) if (name !== "") scope.bind(name, "failed");
    return;
  }
  const inputs = bindings as (Bound | undefined)[];
  const attributes = new Attributes(attributeMap(node, context.call), at);
  const results = body
    ? callFunction(body, inputs, { attributes, at, context: within(context, node, 0) })
    : convertOperator(found!, { node, inputs, attributes, at, label, scope, context });
  bindResults(node, results, { scope, at, context });
}

function lookUp(name: string, scope: Scope, at: string): Binding {
  const binding = scope.find(name);
  if (binding) return binding;
  return reject("ONX010", `operand ${JSON.stringify(name)} is not defined before the node`, {
    at,
    help: "nodes must stand in topological order and every operand be an input, initializer or earlier output",
  });
}

function attributeMap(node: NodeProto, call: AttributeMap | undefined): AttributeMap {
  const map = new Map<string, NodeProto["attribute"][number]>();
  for (const attribute of node.attribute) {
    if (attribute.refAttrName === "") map.set(attribute.name, attribute);
    else {
      const given = call?.get(attribute.refAttrName);
      if (given) map.set(attribute.name, given);
    }
  }
  return map;
}

function bindResults(
  node: NodeProto,
  results: readonly (Bound | undefined)[],
  { scope, at, context }: { scope: Scope; at: string; context: WalkContext },
): void {
  for (const [i, name] of node.output.entries()) {
    if (name === "") continue;
    const result = results[i];
    if (!result) {
      reject("ONX009", `output ${i} (${JSON.stringify(name)}) is not supported`, {
        at,
        help: "export the model without this output",
      });
    }
    if (result.kind === "value" && result.home === context.emitter.assembly) {
      result.home.suggestName(result.id, name);
    }
    bindOnce(scope, { name, bound: context.known.take(context.place, name, result), at });
  }
}

/** Names are assigned once: nodes, inputs and initializers of a scope share them. */
export function bindOnce(
  scope: Scope,
  { name, bound, at }: { readonly name: string; readonly bound: Binding; readonly at: string },
): void {
  if (scope.bind(name, bound)) return;
  reject("ONX011", `the name ${JSON.stringify(name)} is assigned twice`, {
    at,
    help: "every value of an ONNX graph has its own name; export the model again",
  });
}

interface Found {
  readonly row: OperatorRow;
  readonly version: number;
}

function findRow(node: NodeProto, at: string, { opsets }: WalkContext): Found {
  const domain = node.domain === "ai.onnx" ? "" : node.domain;
  const table = operatorTables[domain];
  if (!table || !Object.hasOwn(table, node.opType)) {
    const where = domain === "" ? "" : ` of the domain ${JSON.stringify(domain)}`;
    reject("ONX007", `operator ${node.opType}${where} is not supported`, {
      at,
      help: "export the model without it, for instance decomposed into standard operators",
    });
  }
  const opset = opsets.get(domain);
  if (opset === undefined) {
    reject("ONX012", `the model does not import the operator set ${JSON.stringify(domain)}`, {
      at,
      help: "export the model again; opset_import must name every domain in use",
    });
  }
  return findOperator(table[node.opType]!, { opset, op: node.opType, at });
}

interface OperatorCall {
  readonly node: NodeProto;
  readonly inputs: readonly (Bound | undefined)[];
  readonly attributes: Attributes;
  readonly at: string;
  readonly label: string;
  readonly scope: Scope;
  readonly context: WalkContext;
}

function convertOperator(
  { row, version }: Found,
  call: OperatorCall,
): readonly (Bound | undefined)[] {
  const { node, inputs, attributes, at, label, scope, context } = call;
  let copies = 0;
  const view = new NodeView({
    op: node.opType,
    version,
    inputs,
    outputs: node.output,
    attributes,
    emitter: context.emitter,
    origin: { at, label },
    subgraphs: {
      inline: (body, inputs = []) =>
        inlineSubgraph(body, inputs, { ...call, context: within(context, node, copies++) }),
      find: (name) => {
        const found = scope.find(name);
        return found === "failed" ? undefined : found;
      },
      attempt: (body) => attemptQuietly(body, context.diagnostics),
      open: (body, types) => openSubgraph(body, types, call),
    },
    onUnknown: (bound) => context.known.ask(bound),
  });
  const result = takesStringCodes(node.opType, inputs)
    ? convertStrings(view, row.convert)
    : row.convert(view);
  const unread = attributes.unread();
  if (unread.length > 0) throw new DiagnosticError(unread);
  return "kind" in result ? [result] : result;
}

/** Converts a subgraph in the current graph: a branch of If, a body at known inputs. */
function inlineSubgraph(
  body: GraphProto,
  inputs: readonly Bound[],
  { scope, at, context }: OperatorCall,
): readonly Bound[] {
  checkInputCount(body, inputs.length, at);
  const inner = new Scope(scope);
  const nested = deeper(context, at);
  chargeExpansion(context, body.node.length, at);
  for (const [i, { name }] of body.input.entries()) {
    bindOnce(inner, { name, bound: context.known.take(context.place, name, inputs[i]!), at });
  }
  nested.bindInitializers(body, inner);
  walkNodes(body.node, inner, nested);
  return collectOutputs(
    body.output.map((o) => o.name),
    inner,
    at,
  );
}

/** The problems that the body met are in its result, not in the list. */
function attemptQuietly<T>(body: () => T, problems: Diagnostic[]): Result<T> {
  const before = problems.length;
  const result = attempt(body);
  if (result.ok) return result;
  return { ok: false, diagnostics: [...problems.splice(before), ...result.diagnostics] };
}

/** Converts a body in a graph of its own; values around it are captured as they are used. */
function openSubgraph(
  body: GraphProto,
  types: readonly TensorType[],
  { scope, at, label, context }: OperatorCall,
): OpenSubgraph {
  checkInputCount(body, types.length, at);
  const inner = new Scope(scope);
  const emitter = context.emitter.nested();
  const inputs = body.input.map(({ name }, i) => {
    const type = types[i]!;
    const id = emitter.assembly.addInput(name, type);
    bindOnce(inner, { name, bound: { kind: "value", type, home: emitter.assembly, id }, at });
    return id;
  });
  const nested = { ...deeper(context, at), emitter };
  nested.bindInitializers(body, inner);
  const before = context.diagnostics.length;
  walkNodes(body.node, inner, nested);
  if (context.diagnostics.length > before) throw new DiagnosticError([]);
  const names = body.output.map((o) => o.name);
  const results = collectOutputs(names, inner, at);
  const outputs = results.map((bound) => {
    if (isOperand(bound)) return emitter.valueOf(bound, { at, label });
    return reject("ONX013", `a body of control flow gives ${describeBound(bound)}`, {
      at,
      help: "fix the inputs that decide the condition or the number of trips: --value NAME=NUMBER or NAME=FILE.npy (values: { NAME } of load)",
    });
  });
  return { name: body.name, emitter, inputs, outputs };
}

function checkInputCount(body: GraphProto, given: number, at: string): void {
  if (body.input.length === given) return;
  reject("ONX010", `a body takes ${body.input.length} inputs, but gets ${given}`, {
    at,
    help: "export the model again; the operator's documentation gives the inputs of its body",
  });
}

/** Copies of bodies that call others twice grow exponentially. */
function chargeExpansion(context: WalkContext, nodes: number, at: string): void {
  context.expanded.nodes += nodes;
  if (context.expanded.nodes <= largestExpansion) return;
  reject("ONX014", `functions and bodies expand to more than ${largestExpansion} nodes`, {
    at,
    help: "flatten the model before import, or export it with fewer nested functions",
  });
}

interface FunctionCall {
  readonly attributes: Attributes;
  readonly at: string;
  readonly context: WalkContext;
}

/** Expands a model-local function in place; its body sees only its own inputs and attributes. */
function callFunction(
  body: FunctionProto,
  inputs: readonly (Bound | undefined)[],
  { attributes, at, context }: FunctionCall,
): readonly Bound[] {
  const scope = new Scope();
  for (const [i, name] of body.input.entries()) {
    const operand = inputs[i];
    if (operand) bindOnce(scope, { name, bound: operand, at });
  }
  const defaults = body.attributeProto.map((a) => [a.name, a] as const);
  const opsets = new Map([...context.opsets, ...readOpsets(body.opsetImport)]);
  chargeExpansion(context, body.node.length, at);
  const call = new Map([...defaults, ...attributes.all]);
  walkNodes(body.node, scope, { ...deeper(context, at), opsets, call });
  return collectOutputs(body.output, scope, at);
}

/** The place of a body of a node that joins the graph around it. */
function within(context: WalkContext, { output }: NodeProto, copy: number): WalkContext {
  const name = output.find((o) => o !== "") ?? "";
  return { ...context, place: placeWithin(context.place, name, copy) };
}

function deeper(context: WalkContext, at: string): WalkContext {
  if (context.depth < largestDepth) return { ...context, depth: context.depth + 1 };
  return reject("ONX014", `functions or subgraphs nest deeper than ${largestDepth}`, {
    at,
    help: "a function may not call itself; flatten the model",
  });
}

function collectOutputs(names: readonly string[], scope: Scope, at: string): readonly Bound[] {
  return names.map((name) => {
    const binding = scope.find(name);
    if (binding && binding !== "failed") return binding;
    if (binding === "failed") throw new DiagnosticError([]);
    return reject("ONX010", `output ${JSON.stringify(name)} is not defined`, {
      at,
      help: "every output of a graph must be an input, initializer or output of a node",
    });
  });
}

export function functionKey(domain: string, name: string): string {
  return `${domain}::${name}`;
}

/** Versions of the operator sets by domain. */
export function readOpsets(
  imports: readonly { readonly domain: string; readonly version: bigint }[],
): Map<string, number> {
  return new Map(imports.map((o) => [o.domain === "ai.onnx" ? "" : o.domain, Number(o.version)]));
}
