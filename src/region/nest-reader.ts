/** Reads the text form of nests, regions and statements (spelling: nest-text.ts). */
import type { Condition } from "../semantics/condition.ts";
import { type DType, isBigDType, isDType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { IndexRange } from "../semantics/index-range.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import { argument, type ScalarExpr } from "../semantics/scalar-expr.ts";
import { readScalar } from "../semantics/scalar-text.ts";
import { attempt, type Result } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";
import { AccessList } from "./compose-epilogue.ts";
import { monoidNamed, monoidNames } from "./monoid-names.ts";
import type {
  Access,
  Indirect,
  Loop,
  NestItem,
  NestProgram,
  NestTensor,
  Reduction,
  Region,
  Selection,
  Statement,
  Write,
} from "./nest.ts";
import { numberAs } from "./statement.ts";

type Tensors = ReadonlyMap<string, Pick<NestTensor, "dtype">>;

/** What `printNests` prints. */
export function parseNests(text: string): Result<NestProgram> {
  return attempt(() => {
    const reader = new TextReader(text);
    reader.expect("nests");
    const name = reader.string("the name of the program");
    const inputs = readNames(reader);
    reader.expect("->");
    const outputs = readNames(reader);
    reader.expect("{");
    const { symbols, tensors } = readDeclarations(reader, programRoles);
    const items: NestItem[] = [];
    while (!reader.accept("}")) items.push(readItem(reader, tensors));
    expectEnd(reader);
    return { name, symbols, tensors, items, inputs, outputs };
  });
}

/** What `printRegion` prints. */
export function parseRegion(text: string): Result<Region> {
  return attempt(() => {
    const reader = new TextReader(text);
    reader.expect("region");
    const name = reader.name("the name of the region");
    reader.expect("group");
    const group = readGroup(reader);
    const shared = reader.accept("shares") && { sharedLoops: reader.number() };
    reader.expect("{");
    const { symbols, tensors } = readDeclarations(reader, regionRoles);
    const statements: Statement[] = [];
    while (!reader.accept("}")) statements.push(readStatement(reader, tensors));
    expectEnd(reader);
    return { name, group, statements, symbols, tensors, ...shared };
  });
}

/** What `printStatement` prints; `tensors` gives the element types. */
export function parseStatement(text: string, tensors: Tensors): Result<Statement> {
  return attempt(() => {
    const reader = new TextReader(text);
    const statement = readStatement(reader, tensors);
    expectEnd(reader);
    return statement;
  });
}

function expectEnd(reader: TextReader): void {
  if (reader.peek().kind !== "end") reader.fail("the end of the text");
}

function readGroup(reader: TextReader): Region["group"] {
  const name = reader.name("the name of the group");
  reader.expect("anchor");
  const anchor = reader.name("a statement");
  reader.expect("inlined");
  const inlined = readNames(reader);
  reader.expect("epilogue");
  return { name, anchor, inlined, epilogue: readNames(reader) };
}

function readNames(reader: TextReader): readonly string[] {
  reader.expect("(");
  return reader.list(")", () => reader.name());
}

const programRoles = ["input", "weight", "output", "intermediate"] as const;
const regionRoles = [...programRoles, "local"] as const;

function readDeclarations<Role extends string>(reader: TextReader, roles: readonly Role[]) {
  const symbols: { name: string; range: IndexRange }[] = [];
  const tensors = new Map<string, NestTensor & { readonly role: Role }>();
  while (reader.accept("symbol")) {
    const name = reader.name("a symbol");
    reader.expect("in");
    const min = reader.number();
    reader.expect("..");
    symbols.push({ name, range: { min, max: reader.number() } });
  }
  for (;;) {
    const role = roles.find((r) => reader.at(r));
    if (!role || reader.peek(2).text !== ":") return { symbols, tensors };
    reader.next();
    const name = reader.name("a tensor");
    reader.expect(":");
    const dtype = readDType(reader);
    reader.expect("[");
    const shape = reader.list("]", () => readIndexExpr(reader));
    tensors.set(name, { name, dtype, shape, role });
  }
}

function readDType(reader: TextReader): DType {
  const spelled = reader.peek().text;
  if (!isDType(spelled)) reader.fail("an element type");
  reader.next();
  return spelled;
}

function readItem(reader: TextReader, tensors: Tensors): NestItem {
  if (reader.accept("view")) {
    const tensor = reader.name("a tensor");
    reader.expect("of");
    return { kind: "view", view: { tensor, of: reader.name("a tensor") } };
  }
  if (reader.accept("routine")) {
    const name = reader.name("the name of the routine");
    const origin = reader.string("what the routine comes from");
    reader.expect("node");
    const node = reader.number("the number of a node");
    const selects = reader.accept("selects") ? readSelection(reader) : undefined;
    const reads = readNames(reader);
    reader.expect("->");
    const named = { name, node, origin, reads, writes: readNames(reader) };
    return { kind: "routine", routine: selects ? { ...named, selects } : named };
  }
  return { kind: "statement", statement: readStatement(reader, tensors) };
}

function readSelection(reader: TextReader): Selection {
  const largest = reader.accept("greatest");
  if (!largest) reader.expect("least");
  reader.expect("by");
  return { largest, lanes: reader.number("how many groups are compared at once") };
}

function readStatement(reader: TextReader, tensors: Tensors): Statement {
  reader.expect("statement");
  const name = reader.name("the name of the statement");
  const origin = reader.string("the origin");
  reader.expect("{");
  const loops = reader.list("}", () => readLoop(reader));
  const guard = reader.accept("where") ? readConditions(reader) : [];
  reader.expect("{");
  const indirects: Indirect[] = [];
  while (reader.at("index") && reader.peek(2).text === "in") {
    indirects.push(readIndirect(reader, tensors));
  }
  const writes: Write[] = [];
  do writes.push(readWrite(reader));
  while (reader.accept(","));
  reader.expect("=");
  const reduction = readReduction(reader);
  const reads = new AccessList();
  const body = readBodies(reader, tensors, { reads, first: 0, types: [] });
  const types = reduction?.monoid.components.map((c) => c.dtype) ?? body.map((e) => e.dtype);
  const finishReads = new AccessList();
  const finish = reader.accept("finish")
    ? readBodies(reader, tensors, { reads: finishReads, first: body.length, types })
    : undefined;
  reader.expect("}");
  return {
    name,
    loops,
    guard,
    indirects,
    reads: reads.items,
    body,
    ...(reduction ? { reduction } : {}),
    finishReads: finishReads.items,
    ...(finish ? { finish } : {}),
    writes,
    origin,
  };
}

function readLoop(reader: TextReader): Loop {
  const kinds = ["reduce", "scan"] as const;
  const spelled = reader.peek(1).text === "in" ? undefined : kinds.find((k) => reader.accept(k));
  const name = reader.name("a loop");
  reader.expect("in");
  return { name, extent: readIndexExpr(reader), kind: spelled ?? "space" };
}

function readConditions(reader: TextReader): readonly Condition[] {
  const conditions: Condition[] = [];
  do {
    const expr = readIndexExpr(reader);
    const kind = reader.accept("==") ? "zero" : "nonNegative";
    if (kind === "nonNegative") reader.expect(">=");
    reader.expect("0");
    conditions.push({ kind, expr });
  } while (reader.accept("&&"));
  return conditions;
}

function readIndirect(reader: TextReader, tensors: Tensors): Indirect {
  reader.expect("index");
  const name = reader.name("an index variable");
  reader.expect("in");
  const extent = readIndexExpr(reader);
  const range = reader.accept("proved") ? "proved" : "checked";
  if (range === "checked") reader.expect("checked");
  const wraps = reader.accept("wraps");
  reader.expect("=");
  const access = readAccess(reader, tensors);
  if (!access) reader.fail("an access");
  return { name, access, extent, wraps, range };
}

function readWrite(reader: TextReader): Write {
  const tensor = reader.name("a tensor");
  const index = readIndex(reader);
  if (!reader.accept("by")) return { tensor, index, combine: "overwrite" };
  const combine = (["add", "mul", "max", "min"] as const).find((c) => reader.accept(c));
  return { tensor, index, combine: combine ?? reader.fail("add, mul, max or min") };
}

function readIndex(reader: TextReader): readonly IndexExpr[] {
  reader.expect("[");
  return reader.list("]", () => readIndexExpr(reader));
}

function readReduction(reader: TextReader): Reduction | undefined {
  if (!reader.accept("reduce")) return undefined;
  reader.expect("<");
  const name = reader.name("a monoid");
  const dtypes: DType[] = [];
  const classes = ["exact", "reassociates", "approximates"] as const;
  let numericClass: Reduction["numericClass"] | undefined;
  while (!numericClass) {
    reader.expect(",");
    numericClass = classes.find((c) => reader.accept(c));
    if (!numericClass) dtypes.push(readDType(reader));
  }
  const monoid = monoidNamed(name, dtypes);
  if (!monoid) reader.fail(`one of ${monoidNames.join(", ")} over its component types`);
  reader.expect(">");
  return { monoid, numericClass };
}

interface Arguments {
  readonly reads: AccessList;
  /** Number of the first read as an argument. */
  readonly first: number;
  /** Types of the values `_0`, `_1`, … in front of the reads. */
  readonly types: readonly DType[];
}

function readBodies(
  reader: TextReader,
  tensors: Tensors,
  { reads, first, types }: Arguments,
): readonly ScalarExpr[] {
  const readArgument = (): ScalarExpr | undefined => {
    const component = /^_(\d+)$/.exec(reader.peek().text);
    const dtype = component ? types[Number(component[1])] : undefined;
    if (component && dtype && reader.peek(1).text !== "[") {
      reader.next();
      return argument(Number(component[1]), dtype);
    }
    const access = readAccess(reader, tensors);
    return access && argument(first + reads.add(access), tensors.get(access.tensor)!.dtype);
  };
  reader.expect("(");
  return reader.list(")", () => readScalar(reader, readArgument));
}

/** An access, or undefined when the text goes on with something else. */
function readAccess(reader: TextReader, tensors: Tensors): Access | undefined {
  const guarded = reader.at("(");
  const name = reader.peek(guarded ? 1 : 0);
  if (!guarded && (name.kind !== "name" || reader.peek(1).text !== "[")) return undefined;
  if (guarded) reader.next();
  const tensor = tensors.get(name.text);
  if (!tensor) reader.fail("a declared tensor");
  reader.next();
  const index = readIndex(reader);
  const none = numberAs(tensor.dtype, 0);
  if (!guarded) return { tensor: name.text, index, guard: [], fill: none };
  reader.expect("if");
  const guard = readConditions(reader);
  reader.expect("else");
  const fill = isBigDType(tensor.dtype) ? readBig(reader) : reader.number();
  reader.expect(")");
  return { tensor: name.text, index, guard, fill };
}

function readBig(reader: TextReader): bigint {
  const negative = reader.accept("-");
  const token = reader.next();
  if (!/^\d+$/.test(token.text)) reader.fail("an integer");
  return negative ? -BigInt(token.text) : BigInt(token.text);
}
