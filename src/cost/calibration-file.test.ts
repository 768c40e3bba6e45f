import { expect, it } from "vitest";
import { targets } from "../target/index.ts";
import { calibrate } from "./calibration.ts";
import {
  type CalibrationFile,
  checkPlace,
  parseCalibration,
  printCalibration,
} from "./calibration-file.ts";
import { codeFeatures, featureCount } from "./code-features.ts";
import { coreFigures } from "./core-figures.ts";
import { samplesOf } from "./samples.test-support.ts";

const target = targets.get("wasm")!;
const start = coreFigures(target);
const slower = { ...start, arithmeticPerNs: start.arithmeticPerNs / 2 };
/** With lane moves that cost more than any figure says, so that trees have something to learn. */
const samples = samplesOf(slower, 0.02).map((s) => {
  const { laneMoves } = s.regions[0]!.runs[0]!.mix;
  return { ...s, ns: laneMoves > 3 ? s.ns * 1.6 : s.ns / 1.2, schedule: "schedule x for wasm {}" };
});
const place = { target, machine: "a processor", codegen: "1" };
const file: CalibrationFile = {
  target: "wasm",
  machine: place.machine,
  codegen: place.codegen,
  command: "wavetile calibrate --target wasm",
  protocol: "in turns",
  seed: 3,
  fit: calibrate(samples, start),
  samples,
};

function changed(change: (file: Record<string, unknown>) => void): string {
  const json = JSON.parse(printCalibration(file)) as Record<string, unknown>;
  change(json);
  return JSON.stringify(json);
}

it("reads what it wrote, and the samples fit to the same again", () => {
  expect(file.fit.residual).toBeDefined();
  const read = parseCalibration(printCalibration(file), "f.json");
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  expect(read.value).toEqual(file);
  expect(calibrate(read.value.samples, start)).toEqual(file.fit);
  expect(checkPlace(read.value, place, "f.json")).toBeUndefined();
});

it("keeps what an emitter counted", () => {
  const counted = { spills: 2, reloads: 1 };
  const emitted = samples.map((s) => ({
    ...s,
    regions: s.regions.map((w) => ({ ...w, counted })),
  }));
  const read = parseCalibration(printCalibration({ ...file, samples: emitted }), "f.json");
  expect(read.ok && read.value.samples).toEqual(emitted);
});

it.each([
  ["no JSON", "{", "it is not JSON"],
  ["another form", changed((f) => (f.schema = "x")), "schema"],
  ["an unknown key", changed((f) => (f.extra = 1)), "extra"],
  ["no samples", changed((f) => (f.samples = [])), "samples"],
  [
    "a feature that is none",
    changed((f) => {
      const trees = [{ feature: featureCount, at: 0, below: 0, above: 0 }];
      (f.fit as Record<string, unknown>).residual = { trees, sigma: 0 };
    }),
    "fit.residual",
  ],
  [
    "a tree without end",
    changed((f) => {
      let tree: unknown = 0;
      for (let i = 0; i < 200; i++) tree = { feature: 0, at: 0, below: tree, above: 0 };
      (f.fit as Record<string, unknown>).residual = { trees: [tree], sigma: 0 };
    }),
    "fit.residual",
  ],
])("refuses %s (CAL001)", (_, text, why) => {
  const read = parseCalibration(text, "f.json");
  expect(read.ok).toBe(false);
  if (read.ok) return;
  expect(read.diagnostics[0]!.code).toBe("CAL001");
  expect(read.diagnostics[0]!.message).toContain(why);
});

it.each([
  ["target", { target: targets.get("x64-avx2")! }],
  ["machine", { machine: "another" }],
  ["version", { codegen: "2" }],
] as const)("belongs to one %s (CAL002)", (what, other) => {
  const fault = checkPlace(file, { ...place, ...other }, "f.json");
  expect(fault?.code).toBe("CAL002");
  expect(fault?.message).toContain(`the ${what} `);
});

it("takes no figure beyond its bounds, none that is unknown, and needs all (CAL001)", () => {
  const { core } = file.fit;
  const { issuePerNs: _, ...missing } = core;
  const odd = [
    { ...core, issuePerNs: start.issuePerNs * 4.1 },
    { ...core, latencyNs: start.latencyNs / 4.1 },
    { ...core, other: 1 },
    missing as typeof core,
  ];
  for (const figures of odd) {
    const fault = checkPlace({ ...file, fit: { ...file.fit, core: figures } }, place, "f.json");
    expect(fault?.code).toBe("CAL001");
  }
});

it("knows how many figures describe a region's code", () => {
  expect(codeFeatures(samples[0]!.regions[0]!, start).row).toHaveLength(featureCount);
});
