/**
 * Straight-line program text under construction. `bind` names a value once per block (or reuses the
 * name from an enclosing block), so that the copies of an unrolled loop share their loads: the register
 * tile of a matrix product loads each operand once.
 */

import type { Expr, LoopMode, Statement } from "../program/statement.ts";
import type { Condition } from "../semantics/condition.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { NameSet } from "./own-names.ts";

/** Makes names that no two lets of one kernel share, nor two of its buffers. */
export class Names {
  readonly #tensors: NameSet;
  #next = 0;

  /** @param tensors what the kernel finds in memory under names of its own */
  constructor(tensors: NameSet = new Set<string>()) {
    this.#tensors = tensors;
  }

  fresh(stem: string): string {
    return `${stem}${this.#next++}`;
  }

  /** The name of a buffer of the kernel's own, which no tensor has. */
  freshBuffer(stem: string): string {
    let name = this.fresh(stem);
    while (this.#tensors.has(name)) name += ".own";
    return name;
  }
}

export class Block {
  readonly statements: Statement[] = [];
  readonly #names: Names;
  readonly #outer: Block | undefined;
  readonly #bound = new Map<string, Expr>();

  constructor(names: Names, outer?: Block) {
    this.#names = names;
    this.#outer = outer;
  }

  push(...statements: readonly Statement[]): void {
    this.statements.push(...statements);
  }

  /** A block inside this one, which may use what is bound here. */
  inner(): Block {
    return new Block(this.#names, this);
  }

  /** The value under a name: bound here unless an equal one is in reach. Literals stay as they are. */
  bind(value: Expr): Expr {
    if (value.kind === "literal" || value.kind === "local") return value;
    const key = exprKey(value);
    const known = this.#find(key);
    if (known) return known;
    const name = this.#names.fresh("v");
    this.push({ kind: "let", name, value });
    const local: Expr = { kind: "local", name, dtype: value.dtype, lanes: value.lanes };
    this.#bound.set(key, local);
    return local;
  }

  /** A loop whose body `fill` writes; nothing when the extent is the constant 0. */
  loop(variable: string, extent: IndexExpr, mode: LoopMode, fill: (body: Block) => void): void {
    const body = this.inner();
    fill(body);
    if (body.statements.length === 0 || extent.key === "0") return;
    this.push({ kind: "for", variable, extent, mode, body: body.statements });
  }

  /** Both branches; without conditions only the first, inline. */
  branch(
    conditions: readonly Condition[],
    then: (body: Block) => void,
    otherwise: (body: Block) => void = () => {},
  ): void {
    if (conditions.length === 0) {
      then(this);
      return;
    }
    const yes = this.inner();
    const no = this.inner();
    then(yes);
    otherwise(no);
    if (yes.statements.length === 0 && no.statements.length === 0) return;
    this.push({ kind: "if", conditions, then: yes.statements, else: no.statements });
  }

  #find(key: string): Expr | undefined {
    for (let block: Block | undefined = this; block; block = block.#outer) {
      const known = block.#bound.get(key);
      if (known) return known;
    }
    return undefined;
  }
}

/** A key that is equal exactly for structurally equal values. */
export function exprKey(e: Expr): string {
  const type = `${e.dtype}x${e.lanes}`;
  switch (e.kind) {
    case "literal":
      return `${type}:${Object.is(e.value, -0) ? "-0" : e.value}`;
    case "index":
      return `${type}:i(${e.expr.key};${e.laneStep})`;
    case "load": {
      const guard = e.guard.map((c) => `${c.kind}${c.expr.key}`).join("&");
      return `${type}:${e.buffer}[${e.index.map((i) => i.key).join(",")}]${guard}?${e.fill}`;
    }
    case "local":
      return e.name;
    case "apply":
      return `${type}:${e.op}(${e.operands.map(exprKey).join(",")})`;
    case "call":
      return `${type}:${e.intrinsic}(${e.operands.map(exprKey).join(",")})`;
    case "cast":
      return `${type}:cast${e.saturate}(${exprKey(e.operand)})`;
    case "splat":
      return `${type}:splat(${exprKey(e.operand)})`;
    case "pack":
      return `${type}:pack(${e.operands.map(exprKey).join(",")})`;
    case "extract":
      return `${type}:${e.lane}of(${exprKey(e.operand)})`;
  }
}
