import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkedProgram, writeByIndex } from "../scripts/array-loops.ts";

/** Every form that is changed, and beside it what must stay; `run` notes in order what happens. */
const source = `
interface Pair { readonly a: readonly [number, string]; }
export function run(log: (...args: unknown[]) => void): void {
  const list: number[] = [1, 2, 3];
  // grows while it is walked
  for (const x of list) { if (x < 3 && list.length < 6) list.push(x + 10); log("of", x); }
  outer: for (const x of list) for (const y of [x, x + 1]) { if (y === 2) continue outer; if (y > 11) break outer; log(x, y); }
  for (const [i, x] of list.entries()) log("entry", i, x);
  for (const [, { a: [n, text] }] of [{ a: [1, "one"] } as Pair].entries()) log(n, text);
  for (const [i] of list.entries()) log("only", i);
  for (let x of Float64Array.of(1.5, 2.5)) { x += 1; log("typed", x); }
  for (const x of new Set(list)) log("set", x);
  for (const [key, value] of new Map([["k", 1]])) log(key, value);
  for (const c of "né") log(c);
  const mixed: readonly number[] | Set<number> = list.length > 100 ? new Set(list) : list;
  for (const x of mixed) log("mixed", x);
  function* numbers() { yield* list; }
  for (const x of numbers()) log("made", x);
  const [first, , third, ...rest] = list, [[deep], other] = [[7], 8] as const;
  const [missing] = [] as number[];
  const [filled = 5] = [] as number[];
  const [fromSet] = new Set(list);
  log(first, third, rest, deep, other, missing, filled, fromSet);
  let [a, b] = [1, 2];
  [a, b] = [b, a];
  log(a, b);
  log([[1, 2], [3, 4]].map(([x, y]) => x! * y!), ([[1, [2]]] as const).map(([x, [y]]) => ({ x, y })));
  const add = ([x, y]: readonly [number, number], [z]: number[], { k: [w] }: { k: number[] }) => x + y + z! + w!;
  log(add([1, 2], [3], { k: [4] }), new Kept([5, 6]).sum([1]));
  const kept = [1, 2].map((x) => () => x);
  for (const x of list.slice(0, 2)) kept.push(() => x);
  log(kept.map((f) => f()));
  for (const x of list.slice(0, 1)) { const x = 9; log("inner", x); }
  try { const [none] = undefined as unknown as number[]; log(none); } catch (e) { log((e as Error).name); }
}
class Kept {
  readonly #pair: readonly number[];
  constructor([x, y]: readonly [number, number]) { this.#pair = [x, y]; }
  sum([extra]: readonly number[]): number { let n = extra ?? 0; for (const x of this.#pair) n += x; return n; }
}
`;

let folder = "";
let text = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-loops-"));
  mkdirSync(join(folder, "src"));
  const path = join(folder, "src/sample.ts");
  writeFileSync(path, source);
  const options = { target: "ES2023", module: "NodeNext", strict: true, skipLibCheck: true };
  const config = { compilerOptions: { ...options, types: [] }, include: ["src"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  text = writeByIndex(checkedProgram(join(folder, "tsconfig.json")), path)!;
});
afterAll(() => rmSync(folder, { recursive: true }));

async function logOf(typescript: string): Promise<readonly unknown[]> {
  const module = ts.ModuleKind.ESNext;
  const { outputText } = ts.transpileModule(typescript, {
    compilerOptions: { target: ts.ScriptTarget.ES2023, module },
  });
  const log: unknown[] = [];
  const { run } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  run((...args: unknown[]) => log.push(args));
  return log;
}

it("does the same", async () => {
  const before = await logOf(source);
  expect(before.length).toBeGreaterThan(40);
  expect(await logOf(text)).toEqual(before);
});

it("leaves to iterators what is no array, or is not known to be one", () => {
  const loops = [...text.matchAll(/ of (.*)\) ?/g)].map((m) => m[1]!.split(")")[0]);
  expect(loops).toEqual(["new Set(list", 'new Map([["k", 1]]', '"né"', "mixed", "numbers("]);
  expect(text).toContain("[filled = 5] = ");
  expect(text).toContain("[fromSet] = new Set(list)");
});
