import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serialize } from "node:v8";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeArtifact } from "../artifact/write-artifact.ts";
import type { Result } from "../support/diagnostic.ts";
import { openPath } from "./actions/open.ts";
import { answerPortable, PortableChild } from "./actions/portable-child.ts";
import { compilePortable, isOfGraph } from "./library/portable-program.ts";
import { sampleModel } from "./library/sample-model.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-portable-"));
  writeFileSync(join(folder, "model.onnx"), sampleModel());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

const quiet = { progress: () => {}, now: () => 0, interrupted: () => false } as never;
const args = () => ({
  model: join(folder, "model.onnx"),
  target: "x64-avx2",
  shape: ["M=1..8"],
  state: [],
});

/** The artifact with what a process says, and how often the program was compiled here after all. */
async function withProcess(entry: string) {
  let here = 0;
  const portable = new PortableChild(args(), entry);
  const { artifact, origin } = unwrap(openPath(args(), quiet));
  const compileHere = () => {
    here++;
    return compilePortable(origin!.imported, "auto");
  };
  const whole = unwrap(await portable.addTo({ artifact, emitted: new Map() }, compileHere));
  return { ...whole, here };
}

it("adds the program that is compiled in one go otherwise, and its code", async () => {
  const [said, entry] = [join(folder, "said"), join(folder, "says.mjs")];
  writeFileSync(said, serialize(answerPortable(args())));
  const read = `deserialize(readFileSync(${JSON.stringify(said)}))`;
  const heads = `import { deserialize } from "node:v8"; import { readFileSync } from "node:fs";`;
  writeFileSync(entry, `${heads} process.send(${read}, () => process.exit(0));`);
  const { artifact, emitted, here } = await withProcess(entry);
  const atOnce = unwrap(openPath({ ...args(), portable: true }, quiet)).artifact;
  expect(writeArtifact(artifact)).toEqual(writeArtifact(atOnce));
  expect([here, emitted.get("wasm")?.kind]).toEqual([0, "wasm"]);
});

it("compiles here what a process that ended did not answer", async () => {
  const entry = join(folder, "ends.mjs");
  writeFileSync(entry, "process.exit(3);");
  const { artifact, emitted, here } = await withProcess(entry);
  expect([here, emitted.size, [...artifact.targets.keys()]]).toEqual([1, 0, ["x64-avx2", "wasm"]]);
});

it("knows a program that reads a weight which the artifact's graph has not", () => {
  const { artifact, origin } = unwrap(openPath(args(), quiet));
  const portable = unwrap(compilePortable(origin!.imported, "auto"))!;
  expect(isOfGraph(artifact, portable)).toBe(true);
  const { program } = portable.code;
  const buffers = program.buffers.map((b) => (b.kind === "weight" ? { ...b, source: "other" } : b));
  const code = { ...portable.code, program: { ...program, buffers } };
  expect(isOfGraph(artifact, { ...portable, code })).toBe(false);
});
