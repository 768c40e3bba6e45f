/**
 * Choices that tie several variables together (a fusion group, a table over three or more variables) become a
 * variable of their own whose states are the templates; a hard transition to each member says which
 * of the member's states go with which template. Templates that a member cannot tell apart share a class.
 */
import type { Transition, Variable } from "./problem.ts";

export interface GroupSpec {
  readonly name: string;
  readonly templates: readonly {
    readonly name: string;
    readonly price: number;
    /** States that the template allows; a variable it does not name is free. */
    readonly allowed: readonly { readonly variable: number; readonly states: readonly number[] }[];
  }[];
}

/** The group's variable, to be given the number `at`, and its transitions to the members. */
export function groupParts(
  group: GroupSpec,
  variables: readonly Variable[],
  at: number,
): { readonly variable: Variable; readonly transitions: readonly Transition[] } {
  const { name, templates } = group;
  const variable: Variable = {
    name,
    prices: Float64Array.from(templates, (t) => t.price),
    states: templates.map((t) => t.name),
  };
  const members = new Set(templates.flatMap((t) => t.allowed.map((a) => a.variable)));
  const transitions = [...members]
    .sort((a, b) => a - b)
    .map((member): Transition => {
      const size = variables[member]!.prices.length;
      const { toClass, rows } = classify(group, member, size);
      const count = rows.length;
      const prices = new Float64Array(size * count);
      for (let s = 0; s < size; s++) {
        for (let c = 0; c < count; c++) prices[s * count + c] = rows[c]![s] === 1 ? 0 : Infinity;
      }
      return { from: member, to: at, columns: count, toClass, prices, constraint: name };
    });
  return { variable, transitions };
}

/** Templates by the set of states of the member that they allow. */
function classify(
  group: GroupSpec,
  member: number,
  size: number,
): { readonly toClass: Int32Array; readonly rows: readonly Uint8Array[] } {
  const numbers = new Map<string, number>();
  const rows: Uint8Array[] = [];
  const toClass = Int32Array.from(group.templates, (template) => {
    const row = new Uint8Array(size);
    const allowed = template.allowed.find((a) => a.variable === member);
    if (allowed === undefined) row.fill(1);
    else for (const s of allowed.states) row[s] = 1;
    const key = row.join("");
    let number = numbers.get(key);
    if (number === undefined) {
      number = rows.length;
      numbers.set(key, number);
      rows.push(row);
    }
    return number;
  });
  return { toClass, rows };
}
