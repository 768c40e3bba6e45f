import { describe, expect, test } from "vitest";
import { randomInputs } from "../bench/models/random-inputs.ts";
import { findModel } from "../bench/models/table.ts";
import { ortNodeRuntime } from "../bench/sessions/ort-node.ts";
import type { Runtime } from "../bench/sessions/session.ts";
import { Rng } from "../src/support/rng.ts";
import { agrees } from "./agreement.ts";
import { describeAgreement, describeRegions, describeSameText } from "./print.ts";
import type { PageReading } from "./read-pages.ts";
import { Stage } from "./stage.ts";

const name = "ppocr-v2-cls";

/** onnxruntime-node, with every float output off by `error`, and a profile. */
function offBy(error: number): Runtime {
  const runtime = ortNodeRuntime(1);
  return {
    ...runtime,
    name: "candidate",
    open: async (model) => {
      const session = await runtime.open(model);
      return {
        ...session,
        run: async (feeds) => {
          const outputs = await session.run(feeds);
          for (const t of Object.values(outputs)) {
            if (t.type === "float32") t.data[0]! += error;
          }
          return outputs;
        },
        profile: () => [{ region: "R0", ops: "conv", medianNs: 3000 }],
      };
    },
  };
}

async function runOn(stage: Stage) {
  const session = await stage.open(name);
  await session.run(randomInputs(findModel(name)!.cases[0]!, new Rng(2)));
  const [agreement] = stage.agreements();
  return agreement;
}

describe("Stage", () => {
  test("the reference alone has nothing to agree with", async () => {
    const stage = new Stage(ortNodeRuntime(1));
    expect(await runOn(stage)).toBe(undefined);
    expect(stage.compares).toBe(false);
    expect(stage.shown.name).toBe("onnxruntime-node");
    await stage.close();
  });

  test.each([
    [1e-6, true],
    [1e-2, false],
  ])("a candidate off by %f agrees: %s", async (error, expected) => {
    const stage = new Stage(ortNodeRuntime(1), offBy(error));
    const agreement = (await runOn(stage))!;
    expect(stage.shown.name).toBe("candidate");
    expect(agrees(agreement)).toBe(expected);
    expect(agreement.worst).toBeCloseTo(error, 6);
    const text = describeAgreement([agreement]);
    expect(text).toContain(expected ? "  agrees" : "DISAGREES");
    expect(stage.regions()[0]!.regions[0]!.region).toBe("R0");
    expect(describeRegions(name, stage.regions()[0]!.regions)).toContain("3.0 µs  100.0 %  conv");
    await stage.close();
  });
});

test("text that differs from the reference's is shown", () => {
  const reading = (lines: readonly string[]) => ({ lines, ms: 1 }) as PageReading;
  expect(describeSameText(reading(["a"]), reading(["a"]))).toContain("same text");
  expect(describeSameText(reading(["a", "c"]), reading(["a", "b"]))).toMatch(/NOT .*\n {2}\| b\n/);
});
