/**
 * ONNX to Graph: the door of the importer. Bytes (or a decoded ModelProto) in, a Model out, or all the
 * diagnostics that explain why there is none. Inputs become graph inputs with symbolic dimensions,
 * initializers constants, nodes go through the operator table (graph-walk.ts).
 */
import type { Graph, Model, TensorType, ValueId } from "../../../graph/graph.ts";
import { SymbolScope } from "../../../graph/symbol-scope.ts";
import type { DType } from "../../../semantics/dtype.ts";
import type { IndexExpr } from "../../../semantics/index-expr.ts";
import { toIndex } from "../../../semantics/index-expr.ts";
import type { Tensor } from "../../../semantics/tensor.ts";
import {
  attempt,
  type Diagnostic,
  DiagnosticError,
  diagnostic,
  fail,
  type Result,
  reject,
} from "../../../support/diagnostic.ts";
import { invariant } from "../../../support/invariant.ts";
import { dtypeOf, onnxTypeName } from "../data-types.ts";
import type { ReadExternal } from "../external-data.ts";
import type {
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
  TypeProto_Tensor,
  ValueInfoProto,
} from "../generated/onnx_pb.ts";
import { type InputValue, isTensor, type OutputForm } from "../host-value.ts";
import { readModelFile } from "../model-file.ts";
import { readSparseTensor } from "../sparse-tensor.ts";
import { readStringTensor, readTensorProto, viewBytes } from "../tensor-proto.ts";
import { defaultModelLimits, type ModelLimits } from "../wire-limits.ts";
import { Assembly, spellName } from "./assembly.ts";
import { checkConstantWork } from "./constant-work.ts";
import { Emitter } from "./emitter.ts";
import { checkShapeSize } from "./extent-limits.ts";
import { foldOperations } from "./fold.ts";
import {
  bindOnce,
  functionKey,
  readOpsets,
  Scope,
  type WalkContext,
  walkNodes,
} from "./graph-walk.ts";
import { KnownValues, outermost } from "./known-values.ts";
import { MissingData, noted, unreadable } from "./missing-data.ts";
import { type Bound, constantOperand, isOperand, lazyConstant, type Operand } from "./operand.ts";
import { newestOpset, oldestOpset } from "./operator-row.ts";
import { type ShapeOverrides, ShapeOverrideTable } from "./shape-override.ts";

export interface ImportOptions {
  /** Values, ranges or expressions for symbolic dimensions, by name. */
  readonly shapes?: ShapeOverrides;
  /**
   * What is known of inputs at import, by name. Values that are fixed vanish from the graph; strings
   * and optionals must be known, of a sequence only its length and the types of its elements.
   */
  readonly values?: Readonly<Record<string, InputValue>>;
  readonly limits?: ModelLimits;
  /** Values that are known although nodes would compute them: those of one run, by the names of KnownValues. */
  readonly computed?: Readonly<Record<string, Tensor>>;
  /** Values to give out in the place of the model's outputs; what they do not need is left out. */
  readonly outputs?: readonly string[];
  /** Called with values of few elements that would have to be known, where the model is refused without. */
  readonly onUnknown?: (name: string) => void;
  /** Elements up to which constant ops are computed at import. */
  readonly foldElements?: number;
  /** How external data is read; without it a model that has some is refused. */
  readonly readExternal?: ReadExternal;
}

export interface ImportedModel extends Model {
  /** The model's own names of the graph's inputs and outputs, in order. */
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** How each output of the model is made of the graph's. */
  readonly outputs: readonly OutputForm[];
}

/** What a model says of itself before anything is computed: the extents of its inputs may be open. */
export interface ModelInterface {
  /** The inputs alone: no node, no output. */
  readonly graph: Graph;
  readonly inputNames: readonly string[];
  /** As the model declares them; those without element type or rank are left out. */
  readonly outputs: readonly DeclaredOutput[];
}

export interface DeclaredOutput {
  readonly name: string;
  readonly dtype: DType;
  /** A string is the name of an extent. */
  readonly shape: readonly (number | string)[];
}

const defaultFoldElements = 2 ** 20;

/** Imports the bytes of a .onnx file. */
export function importOnnx(bytes: Uint8Array, options: ImportOptions = {}): Result<ImportedModel> {
  const model = readModelFile(bytes, options.limits ?? defaultModelLimits);
  return model.ok ? importModel(model.value, options) : model;
}

/** The interface of the bytes of a .onnx file; its nodes and weights may be beyond this importer. */
export function readInterface(
  bytes: Uint8Array,
  options: ImportOptions = {},
): Result<ModelInterface> {
  const model = readModelFile(bytes, options.limits ?? defaultModelLimits);
  return model.ok ? interfaceOf(model.value, options) : model;
}

/** The interface of a decoded model. */
export function interfaceOf(
  proto: ModelProto,
  options: ImportOptions = {},
): Result<ModelInterface> {
  return attempt((warn) => new ModelImport(proto, options, warn).interfaceOnly());
}

/** Imports a decoded model. */
export function importModel(proto: ModelProto, options: ImportOptions = {}): Result<ImportedModel> {
  return attempt((warn) => new ModelImport(proto, options, warn).run());
}

class ModelImport {
  readonly #proto: ModelProto;
  readonly #graph: GraphProto;
  readonly #options: ImportOptions;
  readonly #warn: (d: Diagnostic) => void;
  readonly #diagnostics: Diagnostic[] = [];
  readonly #missing = new MissingData(this.#diagnostics);
  readonly #stored = new Map<string, () => Tensor>();
  readonly #assembly: Assembly;
  readonly #known: KnownValues;
  readonly #dimensions: ShapeOverrideTable;
  readonly #dimensionNames = new Set<string>();
  readonly #inputNames: string[] = [];
  readonly #outputNames: string[] = [];

  constructor(proto: ModelProto, options: ImportOptions, warn: (d: Diagnostic) => void) {
    invariant(proto.graph, () => "a model without a graph");
    this.#proto = proto;
    this.#graph = proto.graph;
    this.#options = options;
    this.#warn = warn;
    this.#assembly = new Assembly(new SymbolScope(), this.#stored);
    this.#known = new KnownValues(this.#assembly, options);
    this.#dimensions = new ShapeOverrideTable(options.shapes ?? {}, this.#assembly.symbols);
  }

  run(): ImportedModel {
    const context = this.#context();
    const scope = new Scope();
    this.#bindInitializers(this.#graph, scope);
    this.#bindInputs(scope);
    // After a refusal not every dimension was seen: nothing can be said of what was not used.
    if (this.#diagnostics.length === 0)
      this.#diagnostics.push(...this.#dimensions.unused([...this.#dimensionNames]));
    this.#checkValues();
    walkNodes(this.#nodes(), scope, context);
    // What nodes were refused for that come after all that is wanted.
    if (this.#known.isDone) this.#diagnostics.length = 0;
    const { ids: outputs, forms } = this.#collectOutputs(scope, context.emitter);
    if (this.#diagnostics.length > 0) throw new DiagnosticError(this.#diagnostics);
    this.#warnOfConstraints();
    const read = (key: string): Tensor => {
      const stored = this.#stored.get(key);
      invariant(stored, () => `no weight ${key}`);
      return stored();
    };
    const graph = this.#assembly.finish(this.#graph.name, outputs);
    checkConstantWork(graph);
    return {
      graph,
      weights: { read },
      inputNames: this.#inputNames,
      outputNames: this.#outputNames,
      outputs: forms,
    };
  }

  interfaceOnly(): ModelInterface {
    const scope = new Scope();
    for (const { name } of this.#graph.initializer) scope.bind(name, "failed");
    for (const { values } of this.#graph.sparseInitializer) {
      if (values) scope.bind(values.name, "failed");
    }
    this.#bindInputs(scope);
    if (this.#diagnostics.length > 0) throw new DiagnosticError(this.#diagnostics);
    return {
      graph: this.#assembly.finish(this.#graph.name, []),
      inputNames: this.#inputNames,
      outputs: this.#graph.output.flatMap(declaredOutput),
    };
  }

  /** Those that the wanted outputs need. */
  #nodes(): readonly NodeProto[] {
    const { outputs } = this.#options;
    return outputs ? nodesFor(this.#graph, outputs) : this.#graph.node;
  }

  #context(): WalkContext {
    const opsets = readOpsets(this.#proto.opsetImport);
    const opset = opsets.get("");
    if (opset !== undefined && (opset < oldestOpset || opset > newestOpset)) {
      const warning = `operator set ${opset} is outside ${oldestOpset} to ${newestOpset}`;
      this.#warn(opsetProblem(warning));
    }
    return {
      emitter: new Emitter(this.#assembly, {
        elements: this.#options.foldElements ?? defaultFoldElements,
        operations: foldOperations,
      }),
      opsets,
      functions: new Map(this.#proto.functions.map((f) => [functionKey(f.domain, f.name), f])),
      diagnostics: this.#diagnostics,
      bindInitializers: (graph, scope) => this.#bindInitializers(graph, scope),
      depth: 0,
      place: "",
      known: this.#known,
      expanded: { nodes: 0 },
    };
  }

  #bindInitializers(graph: GraphProto, scope: Scope): void {
    for (const tensor of graph.initializer) {
      const at = `initializer ${JSON.stringify(tensor.name)}`;
      this.#collect(
        () => {
          bindOnce(scope, { name: tensor.name, bound: this.#readTensor(tensor, at), at });
        },
        () => scope.bind(tensor.name, "failed"),
      );
    }
    for (const sparse of graph.sparseInitializer) {
      const name = sparse.values?.name ?? "";
      const at = `initializer ${JSON.stringify(name)}`;
      this.#collect(
        () => {
          const dense = constantOperand(readSparseTensor(sparse, at), name);
          bindOnce(scope, { name, bound: dense, at });
        },
        () => scope.bind(name, "failed"),
      );
    }
  }

  #readTensor(proto: TensorProto, at: string): Bound | "failed" {
    const strings = readStringTensor(proto, at);
    if (strings) return strings;
    const tensor = readTensorProto(proto, at);
    if (tensor.kind === "inline") return constantOperand(tensor.tensor, proto.name);
    const { dtype, shape, range } = tensor;
    const read = (skipped: number, length: number): Result<Uint8Array> => {
      const { readExternal } = this.#options;
      return readExternal
        ? readExternal(range.location, range.offset + skipped, length)
        : fail(unreadable(range.location));
    };
    // The last byte tells now, before anything is compiled, whether the file is there and long enough.
    const last = read(Math.max(0, range.length - 1), Math.min(1, range.length));
    if (!last.ok) {
      this.#missing.add(range.location, at, last.diagnostics);
      return "failed";
    }
    return lazyConstant({ dtype, shape }, proto.name, () => {
      const bytes = read(0, range.length);
      if (!bytes.ok) throw new DiagnosticError(bytes.diagnostics.map((d) => noted(d, [at])));
      return { dtype, shape, data: viewBytes(dtype, bytes.value) };
    });
  }

  #bindInputs(scope: Scope): void {
    // Up to IR version 3 initializers are listed among the inputs.
    const { initializer, sparseInitializer } = this.#graph;
    const initializers = new Set([
      ...initializer.map((t) => t.name),
      ...sparseInitializer.map((t) => t.values?.name ?? ""),
    ]);
    for (const input of this.#graph.input) {
      const at = `input ${JSON.stringify(input.name)}`;
      if (initializers.has(input.name)) continue;
      this.#collect(
        () => {
          const given = this.#givenValue(input) ?? this.#graphInput(input, at);
          bindOnce(scope, { name: input.name, bound: this.#known.take("", input.name, given), at });
        },
        () => scope.bind(input.name, "failed"),
      );
    }
  }

  #givenValue(input: ValueInfoProto): Bound | undefined {
    const { values } = this.#options;
    if (!values || !Object.hasOwn(values, input.name)) return undefined;
    const dims = heldType(input)?.shape?.dim ?? [];
    for (const [axis, dim] of dims.entries()) {
      if (dim.value.case === "dimValue") continue;
      this.#dimensions.passOver(dim.value.value || unnamedExtent(input.name, "input", axis));
    }
    return this.#bindValue(input.name, values[input.name]!);
  }

  /** Elements of a sequence are inputs of their own: `name.0`, `name.1`, … */
  #bindValue(name: string, value: InputValue): Bound {
    if (isTensor(value)) return constantOperand(value, name);
    if (value.kind === "strings" || value.kind === "none") return value;
    if (value.kind === "sequence") {
      const elements = value.elements.map((e, i) => this.#bindValue(`${name}.${i}`, e));
      return { kind: "sequence", elements };
    }
    return this.#addInput(name, { dtype: value.dtype, shape: value.shape.map(toIndex) });
  }

  #addInput(name: string, type: TensorType): Operand {
    this.#inputNames.push(name);
    const id = this.#assembly.addInput(name, type);
    return { kind: "value", type, home: this.#assembly, id };
  }

  #graphInput(input: ValueInfoProto, at: string): Operand {
    const type = heldType(input);
    if (!type?.shape) {
      const found = input.type?.value.case ?? "missing";
      reject("ONX014", `its type is ${found}, not a tensor with known rank`, {
        at,
        help: "export the model with tensors of known rank; a tensor that is the same in every run can be fixed: --value NAME=FILE.npy (values: { NAME } of load)",
      });
    }
    const dtype = dtypeOf(type.elemType);
    if (dtype === undefined) {
      reject("ONX003", `${onnxTypeName(type.elemType)} elements are not supported`, {
        at,
        help: "a run takes numbers only: make the strings an initializer or a Constant of the model, what follows from them is computed at import; or feed the numbers that they are turned into",
      });
    }
    const shape = type.shape.dim.map((dim, axis): IndexExpr => {
      if (dim.value.case === "dimValue") return fixedExtent(dim.value.value, at);
      const name = dim.value.value || unnamedExtent(input.name, "input", axis);
      this.#dimensionNames.add(name);
      return this.#dimensions.resolve(name);
    });
    checkShapeSize(shape, at);
    return this.#addInput(input.name, { dtype, shape });
  }

  #checkValues(): void {
    const names = new Set(this.#graph.input.map((i) => i.name));
    for (const name of Object.keys(this.#options.values ?? {})) {
      if (names.has(name)) continue;
      this.#diagnostics.push(
        diagnostic("ONX015", `the model has no input ${JSON.stringify(name)}`, {
          at: `value of input ${name}`,
          help: `its inputs are ${[...names].join(", ")}`,
        }),
      );
    }
  }

  #collectOutputs(
    scope: Scope,
    emitter: Emitter,
  ): { readonly ids: ValueId[]; readonly forms: OutputForm[] } {
    const ids: ValueId[] = [];
    const forms: OutputForm[] = [];
    const take = (name: string, bound: Bound, at: string): OutputForm => {
      if (bound.kind === "sequence") {
        const elements = bound.elements.map((e, i) => take(`${name}.${i}`, e, at));
        return { kind: "sequence", elements };
      }
      if (!isOperand(bound)) return bound;
      const id = emitter.valueOf(bound, { at, label: name });
      if (!this.#assembly.inputs.includes(id)) this.#assembly.suggestName(id, name, true);
      this.#outputNames.push(name);
      return { kind: "output", index: ids.push(id) - 1 };
    };
    for (const name of this.#options.outputs ?? this.#graph.output.map((o) => o.name)) {
      const at = `output ${JSON.stringify(name)}`;
      this.#collect(() => {
        const binding = this.#known.find(name) ?? scope.find(name);
        if (binding === "failed") return;
        if (!binding) {
          reject("ONX010", `output ${JSON.stringify(name)} is not defined`, {
            at,
            help: "every output of a graph must be an input, initializer or output of a node",
          });
        }
        forms.push(take(name, binding, at));
      });
    }
    return { ids, forms };
  }

  #warnOfConstraints(): void {
    for (const { left, right, origin } of this.#assembly.constraints) {
      this.#warn(
        diagnostic("ONX017", `${left.key} = ${right.key} is assumed, and checked at run time`, {
          severity: "info",
          at: origin,
          help: "name the dimensions equally in the model, or fix them with --shape NAME=NUMBER (shapes of load)",
        }),
      );
    }
  }

  #collect(body: () => void, failed?: () => void): void {
    const result = attempt(body);
    if (result.ok) return;
    this.#diagnostics.push(...result.diagnostics);
    failed?.();
  }
}

/** The nodes that lead to some values, in the model's order. */
function nodesFor({ node }: GraphProto, outputs: readonly string[]): readonly NodeProto[] {
  const needed = new Set(outputs.map(outermost));
  const kept = node.toReversed().filter((n) => {
    if (!n.output.some((name) => needed.has(name))) return false;
    for (const name of namesRead(n)) needed.add(name);
    return true;
  });
  return kept.toReversed();
}

/** Operands, those that bodies capture among them. */
function namesRead({ input, attribute }: NodeProto): readonly string[] {
  const bodies = attribute.flatMap((a) => (a.g ? [a.g, ...a.graphs] : a.graphs));
  const captured = bodies.flatMap((body) => [
    ...body.node.flatMap(namesRead),
    ...body.output.map((o) => o.name),
  ]);
  return [...input, ...captured];
}

function declaredOutput({ name, type }: ValueInfoProto): DeclaredOutput[] {
  if (type?.value.case !== "tensorType") return [];
  const dtype = dtypeOf(type.value.value.elemType);
  const dims = type.value.value.shape?.dim;
  if (dtype === undefined || !dims) return [];
  const shape = dims.map(({ value }, axis) => {
    if (value.case === "dimValue") return Number(value.value);
    return value.value ? spellName(value.value, "dim") : unnamedExtent(name, "output", axis);
  });
  return [{ name, dtype, shape }];
}

/** The name of an extent that the model gives none. */
/** The tensor type of an input; of an optional one, that of the tensor that it may hold. Undefined: another type. */
function heldType({ type }: ValueInfoProto): TypeProto_Tensor | undefined {
  const own = type?.value;
  const held = own?.case === "optionalType" ? own.value.elemType?.value : own;
  return held?.case === "tensorType" ? held.value : undefined;
}

function unnamedExtent(port: string, kind: "input" | "output", axis: number): string {
  return `${spellName(port, kind)}_dim${axis}`;
}

/** Operators that did not exist, or were another, are refused one by one. */
function opsetProblem(message: string): Diagnostic {
  return diagnostic("ONX012", message, {
    severity: "warning",
    help: "convert the model to a supported operator set with onnx.version_converter",
  });
}

function fixedExtent(value: bigint, at: string): IndexExpr {
  if (value < 0n || value > 2n ** 40n) {
    reject("ONX004", `an extent is ${value}`, { at, help: "extents are from 0 to 2^40" });
  }
  return toIndex(Number(value));
}
