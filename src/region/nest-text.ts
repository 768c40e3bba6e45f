/**
 * Text form of nests (the reader is nest-reader.ts):
 *
 *     statement S0 "fc1" {i in M, j in 3072, reduce k in 768} {
 *       t0[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
 *         finish (max(add(_0, b[j]), f32(0)))
 *     }
 *
 * Reads stand where they are used, guarded ones as `(x[h - 1] if h - 1 >= 0 else 0)`; `_0`, `_1` are
 * the values of the body inside `finish`. The order of a statement's reads is that of their first
 * appearance (`canonicalStatement`).
 */
import type { Condition } from "../semantics/condition.ts";
import { printCondition } from "../semantics/condition.ts";
import type { IndexRange } from "../semantics/index-range.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import { printNumber, printScalar } from "../semantics/scalar-text.ts";
import { TextWriter } from "../support/text-writer.ts";
import type {
  Access,
  Indirect,
  Loop,
  NestItem,
  NestProgram,
  Region,
  Statement,
  Write,
} from "./nest.ts";
import { accessKey } from "./statement.ts";

/** A whole program; `parseNests` reads it back. */
export function printNests(program: NestProgram): string {
  const out = new TextWriter();
  out.line(
    `nests ${JSON.stringify(program.name)} (${program.inputs.join(", ")}) -> (${program.outputs.join(", ")}) {`,
  );
  out.indented(() => {
    printDeclarations(program, out);
    for (const item of program.items) printItem(item, out);
  });
  return out.line("}").toString();
}

/** A region; `parseRegion` reads it back. */
export function printRegion(region: Region): string {
  const { group } = region;
  const out = new TextWriter();
  const members = `anchor ${group.anchor} inlined (${group.inlined.join(", ")}) epilogue (${group.epilogue.join(", ")})`;
  const shared = region.sharedLoops === undefined ? "" : ` shares ${region.sharedLoops}`;
  out.line(`region ${region.name} group ${group.name} ${members}${shared} {`);
  out.indented(() => {
    printDeclarations(region, out);
    for (const statement of region.statements) writeStatement(statement, out);
  });
  return out.line("}").toString();
}

function printDeclarations(of: Pick<Region, "symbols" | "tensors">, out: TextWriter): void {
  for (const { name, range } of of.symbols) out.line(`symbol ${name} in ${printRange(range)}`);
  for (const { name, dtype, shape, role } of of.tensors.values()) {
    out.line(`${role} ${name} : ${dtype}[${shape.map((d) => d.key).join(", ")}]`);
  }
}

function printRange({ min, max }: IndexRange): string {
  return `${printNumber(min)}..${printNumber(max)}`;
}

function printItem(item: NestItem, out: TextWriter): void {
  switch (item.kind) {
    case "statement":
      writeStatement(item.statement, out);
      break;
    case "view":
      out.line(`view ${item.view.tensor} of ${item.view.of}`);
      break;
    case "routine": {
      const { name, node, origin, reads, writes, selects } = item.routine;
      const kind = selects?.largest ? "greatest" : "least";
      const selected = selects ? ` selects ${kind} by ${selects.lanes}` : "";
      const head = `routine ${name} ${JSON.stringify(origin)} node ${node}${selected}`;
      out.line(`${head} (${reads.join(", ")}) -> (${writes.join(", ")})`);
    }
  }
}

/** One statement; `parseStatement` reads it back given its tensors. */
export function printStatement(statement: Statement): string {
  const out = new TextWriter();
  writeStatement(statement, out);
  return out.toString();
}

function writeStatement(statement: Statement, out: TextWriter): void {
  const { name, origin, loops, guard, indirects, writes } = statement;
  const where = guard.length === 0 ? "" : ` where ${printConditions(guard)}`;
  out.line(
    `statement ${name} ${JSON.stringify(origin)} {${loops.map(printLoop).join(", ")}}${where} {`,
  );
  out.indented(() => {
    for (const indirect of indirects) out.line(printIndirect(indirect));
    out.line(`${writes.map(printWrite).join(", ")} = ${printBody(statement)}`);
    if (statement.finish) out.indented(() => out.line(`finish ${printFinish(statement)}`));
  });
  out.line("}");
}

function printLoop({ name, extent, kind }: Loop): string {
  return `${kind === "space" ? "" : `${kind} `}${name} in ${extent.key}`;
}

function printConditions(conditions: readonly Condition[]): string {
  return conditions.map(printCondition).join(" && ");
}

function printIndirect({ name, access, extent, wraps, range }: Indirect): string {
  const how = `${range}${wraps ? " wraps" : ""}`;
  return `index ${name} in ${extent.key} ${how} = ${printAccess(access)}`;
}

function printWrite({ tensor, index, combine }: Write): string {
  const how = combine === "overwrite" ? "" : ` by ${combine}`;
  return `${tensor}[${index.map((e) => e.key).join(", ")}]${how}`;
}

export function printAccess({ tensor, index, guard, fill }: Access): string {
  const place = `${tensor}[${index.map((e) => e.key).join(", ")}]`;
  if (guard.length === 0) return place;
  return `(${place} if ${printConditions(guard)} else ${printNumber(fill)})`;
}

function printBody({ body, reads, reduction }: Statement): string {
  const values = printList(body, (i) => printAccess(reads[i]!));
  if (!reduction) return values;
  const types = reduction.monoid.components.map((c) => c.dtype);
  return `reduce<${[reduction.monoid.name, ...types, reduction.numericClass].join(", ")}>${values}`;
}

function printFinish({ body, finish, finishReads }: Statement): string {
  const count = body.length;
  return printList(finish!, (i) => (i < count ? `_${i}` : printAccess(finishReads[i - count]!)));
}

function printList(exprs: readonly ScalarExpr[], printArgument: (index: number) => string): string {
  return `(${exprs.map((e) => printScalar(e, (a) => printArgument(a.index))).join(", ")})`;
}

/** The statement with its reads in the order of first use, each once, unused ones dropped. */
export function canonicalStatement(statement: Statement): Statement {
  const body = orderReads(statement.body, statement.reads, 0);
  const finish = orderReads(statement.finish ?? [], statement.finishReads, statement.body.length);
  return {
    ...statement,
    reads: body.reads,
    body: body.exprs,
    finishReads: finish.reads,
    ...(statement.finish ? { finish: finish.exprs } : {}),
  };
}

/** The program with canonical statements: what reading its text gives. */
export function canonicalNests(program: NestProgram): NestProgram {
  const items = program.items.map((item) =>
    item.kind === "statement" ? { ...item, statement: canonicalStatement(item.statement) } : item,
  );
  return { ...program, items };
}

function orderReads(exprs: readonly ScalarExpr[], accesses: readonly Access[], first: number) {
  const places = new Map<string, number>();
  const reads: Access[] = [];
  const place = (index: number): number => {
    const access = accesses[index - first]!;
    const key = accessKey(access);
    const known = places.get(key);
    if (known !== undefined) return known;
    places.set(key, first + reads.length);
    return first + reads.push(access) - 1;
  };
  const renumber = (e: ScalarExpr): ScalarExpr => {
    if (e.kind === "argument") return e.index < first ? e : { ...e, index: place(e.index) };
    if (e.kind === "cast") return { ...e, operand: renumber(e.operand) };
    return e.kind === "apply" ? { ...e, operands: e.operands.map(renumber) } : e;
  };
  const renumbered = exprs.map(renumber);
  return { exprs: renumbered, reads };
}
