/**
 * Problem files: JSON of the schema `wavetile/problem/1`. Names stand for variables and states; groups and
 * budgets over live intervals are spelled as such and become variables, transitions and budgets here.
 * docs/collapse.md describes the form. Every fault of a file is a diagnostic.
 */
import { fail, ok, type Result } from "../support/diagnostic.ts";
import { type GroupSpec, groupParts } from "./groups.ts";
import { type Json, type JsonObject, JsonReader, parseJson } from "./json-reader.ts";
import { type LiveUse, peakBudgets } from "./live-budgets.ts";
import type { Budget, BudgetUse, Exclusion, Problem, Transition, Variable } from "./problem.ts";

export const problemSchema = "wavetile/problem/1";

export function readProblem(text: string): Result<Problem> {
  const reader = new JsonReader();
  const json = parseJson(text, reader);
  const problem = json === undefined ? undefined : new ProblemReader(reader).problem(json);
  return problem === undefined || reader.faults.length > 0 ? fail(...reader.faults) : ok(problem);
}

/** The problem in an already parsed document. */
export function problemFromJson(json: Json, reader: JsonReader): Problem | undefined {
  return new ProblemReader(reader).problem(json);
}

const topKeys = {
  required: ["schema", "name", "variables"],
  optional: ["unit", "offset", "tables", "transitions", "groups", "budgets", "undirected"],
};

interface Table {
  readonly columns: number;
  readonly prices: Float64Array;
}

class ProblemReader {
  readonly #reader: JsonReader;
  readonly #variables: Variable[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #tables = new Map<string, Table>();

  constructor(reader: JsonReader) {
    this.#reader = reader;
  }

  problem(json: Json): Problem | undefined {
    const reader = this.#reader;
    const top = reader.object(json, "the file", topKeys);
    if (top === undefined) return undefined;
    if (top.schema !== problemSchema) {
      return reader.fault("PRB002", "schema", `expected "${problemSchema}"`);
    }
    const name = reader.text(top.name, "name") ?? "";
    this.#readVariables(top.variables);
    this.#readTables(top.tables);
    if (reader.faults.length > 0) return undefined;
    const transitions = this.#listOf(top.transitions, "transitions", (t, at) =>
      this.#transition(t, at),
    );
    if (top.undirected !== true) this.#requireDag(transitions);
    const undirected = top.undirected;
    if (undirected !== undefined) reader.flag(undirected, "undirected");
    const layers = this.#variables.length;
    for (const group of this.#listOf(top.groups, "groups", (g, at) => this.#group(g, at))) {
      const parts = groupParts(group, this.#variables, this.#variables.length);
      this.#declare(parts.variable, "groups");
      transitions.push(...parts.transitions);
    }
    const flow = transitions.filter((t) => t.from < layers && t.to < layers);
    const budgets = this.#listOf(top.budgets, "budgets", (b, at) => this.#budget(b, at, flow));
    const offset = top.offset === undefined ? 0 : (reader.number(top.offset, "offset") ?? 0);
    const unit = top.unit === undefined ? undefined : this.#unit(top.unit);
    const parts = { name, variables: this.#variables, transitions, budgets: budgets.flat() };
    return { ...parts, offset, ...(unit && { unit }) };
  }

  #listOf<T>(
    value: Json | undefined,
    at: string,
    read: (item: Json, at: string) => T | undefined,
  ): T[] {
    if (value === undefined) return [];
    const list = this.#reader.list(value, at) ?? [];
    return list.flatMap((item, i) => {
      const found = read(item, `${at}[${i}]`);
      return found === undefined ? [] : [found];
    });
  }

  #declare(variable: Variable, at: string): void {
    if (this.#numbers.has(variable.name)) {
      this.#reader.fault("PRB005", at, `"${variable.name}" is declared twice`);
    }
    this.#numbers.set(variable.name, this.#variables.length);
    this.#variables.push(variable);
  }

  #readVariables(value: Json | undefined): void {
    const list = this.#listOf(value, "variables", (v, at) => this.#variable(v, at));
    for (const variable of list) this.#declare(variable, "variables");
  }

  #variable(json: Json, at: string): Variable | undefined {
    const reader = this.#reader;
    const keys = { required: ["name", "prices"], optional: ["states", "forbid"] };
    const object = reader.object(json, at, keys);
    const name = object && reader.text(object.name, `${at}.name`);
    const prices = object && reader.prices(object.prices, `${at}.prices`, true);
    if (!object || name === undefined || prices === undefined) return undefined;
    if (prices.length === 0) return reader.fault("PRB006", at, `variable "${name}" has no state`);
    const states = object.states && reader.texts(object.states, `${at}.states`);
    if (states && states.length !== prices.length) {
      const found = `${states.length} states and ${prices.length} prices`;
      return reader.fault("PRB008", at, `variable "${name}" has ${found}`);
    }
    if (states && new Set(states).size < states.length) {
      return reader.fault("PRB005", at, `variable "${name}" has two states of one name`);
    }
    const bare: Variable = states ? { name, prices, states } : { name, prices };
    const exclusions = this.#listOf(object.forbid, `${at}.forbid`, (x, place) =>
      this.#exclusion(x, place, bare),
    );
    return exclusions.length > 0 ? { ...bare, exclusions } : bare;
  }

  #exclusion(json: Json, at: string, variable: Variable): Exclusion | undefined {
    const object = this.#reader.object(json, at, { required: ["constraint", "states"] });
    const constraint = object && this.#reader.text(object.constraint, `${at}.constraint`);
    const states = object && this.#states(object.states, `${at}.states`, variable);
    return constraint === undefined || !states ? undefined : { constraint, states };
  }

  /** States by name, or by number where they have none. */
  #states(json: Json | undefined, at: string, variable: Variable): number[] | undefined {
    const list = this.#reader.list(json, at);
    return list?.flatMap((item, i) => {
      const state = typeof item === "string" ? (variable.states?.indexOf(item) ?? -1) : item;
      const known =
        typeof state === "number" &&
        Number.isInteger(state) &&
        state >= 0 &&
        state < variable.prices.length;
      if (known) return [state];
      const message = `variable "${variable.name}" has no state ${JSON.stringify(item)}`;
      this.#reader.fault("PRB004", `${at}[${i}]`, message, oneOf(variable.states ?? []));
      return [];
    });
  }

  #readTables(value: Json | undefined): void {
    if (value === undefined) return;
    const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
    const object = this.#reader.object(value, "tables", { required: [], optional: names });
    for (const [name, table] of Object.entries(object ?? {})) {
      const read = this.#table(table, `tables.${name}`);
      if (read) this.#tables.set(name, read);
    }
  }

  /** Rows of prices, or the name of a shared table. */
  #table(json: Json | undefined, at: string): Table | undefined {
    const reader = this.#reader;
    if (typeof json === "string") {
      const known = this.#tables.get(json);
      if (known) return known;
      return reader.fault("PRB004", at, `there is no table "${json}"`, oneOf(this.#tables.keys()));
    }
    const rows = reader.list(json, at)?.map((r, i) => reader.prices(r, `${at}[${i}]`, true));
    if (rows === undefined || rows.some((r) => r === undefined)) return undefined;
    const columns = rows[0]?.length ?? 0;
    if (columns === 0 || rows.some((r) => r!.length !== columns)) {
      return reader.fault("PRB008", at, "expected rows of prices, all of one length");
    }
    const prices = new Float64Array(rows.length * columns);
    rows.forEach((row, i) => {
      prices.set(row!, i * columns);
    });
    return { columns, prices };
  }

  #variableNumber(json: Json | undefined, at: string): number | undefined {
    const name = this.#reader.text(json, at);
    if (name === undefined) return undefined;
    const number = this.#numbers.get(name);
    if (number !== undefined) return number;
    const help = oneOf(this.#numbers.keys());
    return this.#reader.fault("PRB004", at, `there is no variable "${name}"`, help);
  }

  #transition(json: Json, at: string): Transition | undefined {
    const keys = {
      required: ["from", "to", "prices"],
      optional: ["fromClasses", "toClasses", "constraint"],
    };
    const object = this.#reader.object(json, at, keys);
    if (!object) return undefined;
    const from = this.#variableNumber(object.from, `${at}.from`);
    const to = this.#variableNumber(object.to, `${at}.to`);
    const table = this.#table(object.prices, `${at}.prices`);
    if (from === undefined || to === undefined || !table) return undefined;
    if (from === to) return this.#reader.fault("PRB007", at, "a transition leads to its own start");
    const rows = table.prices.length / table.columns;
    const fromClass = this.#classes(object, "fromClasses", { at, variable: from, count: rows });
    const toClass = this.#classes(object, "toClasses", { at, variable: to, count: table.columns });
    if (fromClass === undefined || toClass === undefined) return undefined;
    const constraint =
      object.constraint === undefined
        ? undefined
        : this.#reader.text(object.constraint, `${at}.constraint`);
    return {
      from,
      to,
      ...table,
      ...(fromClass !== "own" && { fromClass }),
      ...(toClass !== "own" && { toClass }),
      ...(constraint !== undefined && { constraint }),
    };
  }

  #classes(
    object: JsonObject,
    key: string,
    {
      at,
      variable,
      count,
    }: { readonly at: string; readonly variable: number; readonly count: number },
  ): Int32Array | "own" | undefined {
    const { name, prices } = this.#variables[variable]!;
    const value = object[key];
    const place = `${at}.${key}`;
    if (value === undefined) {
      if (prices.length === count) return "own";
      const found = `the table has ${count} classes`;
      const message = `"${name}" has ${prices.length} states, ${found}`;
      return this.#reader.fault("PRB008", at, message, `give ${key}: one class a state`);
    }
    const classes = this.#reader.prices(value, place, false);
    if (!classes) return undefined;
    if (classes.length !== prices.length || classes.some((c) => c < 0 || c >= count)) {
      const message = `expected ${prices.length} classes from 0 to ${count - 1}`;
      return this.#reader.fault("PRB008", place, message);
    }
    return Int32Array.from(classes);
  }

  #group(json: Json, at: string): GroupSpec | undefined {
    const reader = this.#reader;
    const object = reader.object(json, at, { required: ["name", "templates"] });
    const name = object && reader.text(object.name, `${at}.name`);
    if (!object || name === undefined) return undefined;
    const templates = this.#listOf(object.templates, `${at}.templates`, (t, place) =>
      this.#template(t, place),
    );
    if (templates.length > 0) return { name, templates };
    return reader.fault("PRB006", at, `group "${name}" has no template`);
  }

  #template(json: Json, at: string): GroupSpec["templates"][number] | undefined {
    const reader = this.#reader;
    const object = reader.object(json, at, { required: ["name", "price", "allow"] });
    const name = object && reader.text(object.name, `${at}.name`);
    const price = object && reader.integer(object.price, `${at}.price`, -Number.MAX_SAFE_INTEGER);
    if (!object || name === undefined || price === undefined) return undefined;
    const members = Object.keys((object.allow as JsonObject | null) ?? {});
    const allow = reader.object(object.allow, `${at}.allow`, { required: members });
    const allowed = members.flatMap((member) => {
      const place = `${at}.allow.${member}`;
      const variable = this.#variableNumber(member, place);
      const states =
        allow && variable !== undefined
          ? this.#states(allow[member], place, this.#variables[variable]!)
          : undefined;
      return variable === undefined || !states ? [] : [{ variable, states }];
    });
    return { name, price, allowed };
  }

  #budget(json: Json, at: string, flow: readonly Transition[]): Budget[] | undefined {
    const reader = this.#reader;
    const keys = { required: ["name", "capacity", "uses"], optional: ["over"] };
    const object = reader.object(json, at, keys);
    const name = object && reader.text(object.name, `${at}.name`);
    const capacity = object && reader.integer(object.capacity, `${at}.capacity`, 0);
    if (!object || name === undefined || capacity === undefined) return undefined;
    const uses = this.#listOf(object.uses, `${at}.uses`, (u, place) => this.#use(u, place));
    const over = object.over ?? "all";
    if (over === "all") return [{ name, capacity, uses }];
    if (over === "live") return peakBudgets({ name, capacity, uses }, this.#variables.length, flow);
    return reader.fault("PRB003", `${at}.over`, 'expected "all" or "live"');
  }

  #use(json: Json, at: string): LiveUse | undefined {
    const reader = this.#reader;
    const keys = { required: ["variable", "amounts"], optional: ["live"] };
    const object = reader.object(json, at, keys);
    const variable = object && this.#variableNumber(object.variable, `${at}.variable`);
    const amounts = object && reader.prices(object.amounts, `${at}.amounts`, false);
    if (!object || variable === undefined || !amounts) return undefined;
    const expected = this.#variables[variable]!.prices.length;
    if (amounts.length !== expected) {
      return reader.fault("PRB008", at, `expected ${expected} amounts, found ${amounts.length}`);
    }
    if (amounts.some((a) => a < 0)) return reader.fault("PRB003", at, "an amount is negative");
    const use: BudgetUse = { variable, amounts };
    if (object.live === undefined) return use;
    const live = reader.prices(object.live, `${at}.live`, false);
    if (live?.length === 2 && live[0]! <= live[1]!) return { ...use, live: [live[0]!, live[1]!] };
    return reader.fault("PRB003", `${at}.live`, "expected [first, last] with first <= last");
  }

  #unit(json: Json): Problem["unit"] {
    const keys = { required: ["name", "perPrice"], optional: ["scores"] };
    const object = this.#reader.object(json, "unit", keys);
    const name = object && this.#reader.text(object.name, "unit.name");
    const perPrice = object && this.#reader.number(object.perPrice, "unit.perPrice", 0);
    if (!object || name === undefined || perPrice === undefined) return undefined;
    const scores =
      object.scores === undefined ? false : this.#reader.flag(object.scores, "unit.scores");
    return { name, perPrice, ...(scores === true && { scores }) };
  }

  #requireDag(transitions: readonly Transition[]): void {
    const cycle = findCycle(this.#variables.length, transitions);
    if (cycle === undefined) return;
    const names = [...cycle, cycle[0]!].map((i) => this.#variables[i]!.name).join(" -> ");
    const help = 'turn one of them around, or set "undirected": true when they are no data flow';
    this.#reader.fault("PRB007", "transitions", `transitions form a cycle: ${names}`, help);
  }
}

function oneOf(names: Iterable<string>): string | undefined {
  const list = [...names];
  if (list.length === 0) return undefined;
  return `use one of ${list.slice(0, 8).join(", ")}${list.length > 8 ? ", ..." : ""}`;
}

/** A directed cycle, or undefined. */
export function findCycle(
  count: number,
  arcs: readonly { readonly from: number; readonly to: number }[],
): number[] | undefined {
  const next: number[][] = Array.from({ length: count }, () => []);
  for (const { from, to } of arcs) next[from]!.push(to);
  const state = new Uint8Array(count);
  for (let start = 0; start < count; start++) {
    if (state[start] !== 0) continue;
    const path = [start];
    const places = [0];
    state[start] = 1;
    while (path.length > 0) {
      const at = path.at(-1)!;
      const place = places[places.length - 1]!++;
      const to = next[at]![place];
      if (to === undefined) {
        state[at] = 2;
        path.pop();
        places.pop();
      } else if (state[to] === 1) return path.slice(path.indexOf(to));
      else if (state[to] === 0) {
        state[to] = 1;
        path.push(to);
        places.push(0);
      }
    }
  }
  return undefined;
}
