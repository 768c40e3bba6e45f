import { expect, test } from "vitest";
import { compileWhole, type EngineOfProcess } from "./node-compile.ts";

const empty = Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const node = { node: "20.19.0", v8: "11.3" };

function engine(given: Partial<EngineOfProcess> = {}) {
  const flags: string[] = [];
  const setFlag = (flag: string): void => void flags.push(flag);
  return { versions: node, options: [], setFlag, flags, ...given };
}

test("flags are set while a module is compiled, and are as before when that fails", () => {
  const sequence = ["--no-liftoff", "--no-wasm-lazy-compilation"];
  sequence.push("--liftoff", "--wasm-lazy-compilation");
  const good = engine();
  expect(compileWhole(empty, good)).toBeInstanceOf(WebAssembly.Module);
  expect(good.flags).toEqual(sequence);
  const bad = engine();
  expect(() => compileWhole(empty.subarray(0, 5), bad)).toThrow(WebAssembly.CompileError);
  expect(bad.flags).toEqual(sequence);
});

test.each<[string, Partial<EngineOfProcess>]>([
  ["whoever started the process chose", { options: ["--liftoff-only"] }],
  ["the environment chose", { options: ["--inspect --no-wasm-tier-up"] }],
  ["another program embeds Node.js", { versions: { ...node, electron: "37.0.0" } }],
  ["the engine is not V8", { versions: { bun: "1.3.0", node: "24.0.0" } }],
])("flags are left alone where %s", (_, given) => {
  const other = engine(given);
  expect(compileWhole(empty, other)).toBeInstanceOf(WebAssembly.Module);
  expect(other.flags).toEqual([]);
});

/** One function, named f, that gives 42. */
const answer = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, 7, 5, 1, 1, 0x66, 0, 0],
  ...[10, 6, 1, 4, 0, 0x41, 42, 0x0b],
]);

test("what this engine compiles under its flags runs", () => {
  const { f } = new WebAssembly.Instance(compileWhole(answer)).exports;
  expect((f as () => number)()).toBe(42);
});
