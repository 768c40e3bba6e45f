/**
 * What the commands answer, as JSON and in words: one envelope for all, verdicts with what was compared
 * and how far apart it was, failures with code, place and cure. Times and paths stand as names.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCommandLine } from "../../src/cli/command-line.ts";
import { writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { checkGolden } from "./golden-file.ts";
import { sampleModels } from "./sample-models.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-golden-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
for (const { name, bytes } of sampleModels) writeFileSync(join(folder, `${name}.onnx`), bytes());
/** How many results there are the data decide: no artifact holds that. */
const places = writeModel({
  name: "places",
  opset: 18,
  inputs: [{ name: "x", dtype: "f32", shape: [8] }],
  outputs: ["y"],
  weights: {},
  nodes: [{ op: "NonZero", inputs: ["x"], outputs: ["y"] }],
});
writeFileSync(join(folder, "places.onnx"), places);
/** Schedules of one's own for running.onnx: one is legal, one reads what is not there yet. */
const skewed = `schedule "S0" for "wasm" {
  skew S0:i1 by i0 times 1
  interchange S0:i0 with i1
}`;
writeFileSync(join(folder, "skewed.txt"), skewed);
writeFileSync(
  join(folder, "early.txt"),
  skewed.replace("skew S0:i1 by i0 times 1", "skew S0:i1 by i0 times -1"),
);
const wide = `schedule "S0" for "wasm" {
  split S0:i0 by 4 -> a b
  interchange S0:a with b
  parallelize S0:a
}`;
writeFileSync(join(folder, "wide.txt"), wide);
writeFileSync(join(folder, "cured.txt"), wide.replace(/ {2}(interchange|parallelize).*\n/g, ""));
writeFileSync(join(folder, "elsewhere.txt"), skewed.replace('"wasm"', '"h100"'));
writeFileSync(join(folder, "twice.txt"), `${skewed}\n${skewed}`);
writeFileSync(join(folder, "nowhere.txt"), skewed.replace('"S0"', '"Q"'));

/** The exit code, and both streams. */
async function answer(...argv: readonly string[]): Promise<string> {
  const written = { out: "", err: "" };
  const stream = (to: keyof typeof written) => ({
    write: (text: string): void => {
      written[to] += text;
    },
  });
  const exit = await runCommandLine(
    argv.map((a) => a.replace("FOLDER", folder)),
    {
      stdout: stream("out"),
      stderr: stream("err"),
      environment: {},
      now: () => 0,
      onInterrupt: () => () => {},
    },
  );
  return `exit ${exit}\n${steady(written.out)}${steady(written.err)}`;
}

/** Without what another day or machine would print: paths, versions, measured and estimated times. */
function steady(text: string): string {
  return text
    .replaceAll(folder, "FOLDER")
    .replace(/("version": )"[^"]*"/g, '$1"VERSION"')
    .replace(/("\w*(?:Ns|Ms|ms|Ps|gap)": )[-+.\de]+/g, "$1TIME")
    .replace(/[\d.]+ ms\b/g, "TIME ms")
    .replace(/^( {4}"bytes": )\d+/gm, "$1SIZE");
}

const own = (file: string): readonly string[] => {
  const use = ["--use", `FOLDER/${file}.txt`];
  return ["inspect", "FOLDER/running.onnx", "--schedule", ...use, "--target", "wasm"];
};
const json = ["--target", "wasm", "--json"];
const lines: readonly (readonly [name: string, argv: readonly string[]])[] = [
  ["optimize", ["optimize", "FOLDER/convolution.onnx", "-o", "FOLDER/c.wt", ...json]],
  ["verify", ["verify", "FOLDER/quantised.onnx", "--threads", "1", ...json]],
  ["run", ["run", "FOLDER/mlp.onnx", "--shape", "M=3", "--random", "--threads", "1", ...json]],
  ["inspect", ["inspect", "FOLDER/running.onnx", "--schedule", "--target", "wasm"]],
  [
    "place",
    ["inspect", "FOLDER/running.onnx", "--schedule", "--at", "S0:S0[1, 2]", "--target", "wasm"],
  ],
  [
    "no place",
    ["inspect", "FOLDER/running.onnx", "--schedule", "--at", "Z[0]", "--target", "wasm"],
  ],
  ["loops", ["inspect", "FOLDER/running.onnx", "--schedule", "--loops", "--target", "wasm"]],
  ["own schedule", [...own("skewed"), "--loops", "--at", "S0[1, 2]"]],
  ["own schedule that is illegal", own("early")],
  ["own schedule with two faults", own("wide")],
  ["own schedule without them", own("cured")],
  ["own schedule of no region", own("nowhere")],
  ["own schedule for another target (SCH040)", own("elsewhere")],
  ["two schedules of one region (SCH041)", own("twice")],
  ["a loop with two values", [...own("skewed"), "--at", "S0[i0 = 1, i0 = 2]"]],
  ["no loops in an artifact", ["inspect", "FOLDER/c.wt", "--schedule", "--loops"]],
  ["loops of what", ["inspect", "FOLDER/running.onnx", "--loops"]],
  ["explain", ["explain", "FOLDER/mlp.onnx", "--shape", "M=1..40", ...json]],
  [
    "explain in pictures",
    [
      "explain",
      "FOLDER/mlp.onnx",
      "--shape",
      "M=1..40",
      "--svg",
      "FOLDER/pictures",
      "--target",
      "wasm",
    ],
  ],
  ["no bound", ["verify", "FOLDER/mlp.onnx", "--threads", "1", ...json]],
  ["no dimension", ["optimize", "FOLDER/mlp.onnx", "--shape", "Q=3", ...json]],
  ["in stages", ["optimize", "FOLDER/places.onnx", ...json]],
  ["no such file", ["run", "FOLDER/none.onnx", "--random", "--json"]],
  ["no such option", ["verify", "FOLDER/mlp.onnx", "--fast"]],
  ["wrong state", ["optimize", "FOLDER/stateful.onnx", "--state", "x=y", "--target", "wasm"]],
];

describe("commands", () => {
  it("answer what was last looked at, twice the same", async () => {
    const ask = async (): Promise<Map<string, string>> => {
      const answers = new Map<string, string>();
      for (const [name, argv] of lines) answers.set(name, await answer(...argv));
      return answers;
    };
    const answers = await ask();
    checkGolden("commands.txt", "What the commands answer about the sample models.", answers);
    expect(await ask()).toEqual(answers);
    // Every command compiles its model twice: a busy machine may take its time.
  }, 900_000);
});
