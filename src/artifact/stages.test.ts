/** Artifacts of models that run in stages: what is damaged or belongs together in no way is refused. */
import { describe, expect, it } from "vitest";
import { tryLoad } from "../commands/library/load.ts";
import { stagedArtifact } from "../commands/library/staged-artifact.test-support.ts";
import { tensor } from "../commands/library/tensor.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { readSafetensors, writeSafetensors } from "../frontend/safetensors/safetensors.ts";
import { sha256 } from "../support/hash.ts";
import { openContainer } from "./container.ts";
import { readArtifact } from "./read-artifact.ts";
import { readStages } from "./read-stages.ts";

const table = Float32Array.from({ length: 20 * 240 }, (_, i) => i % 7);
const bytes = stagedArtifact(
  writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [20] }],
    outputs: ["sum"],
    weights: { table: tensor("f32", [20, 240], table) },
    nodes: [
      { op: "NonZero", inputs: ["x"], outputs: ["places"] },
      { op: "Gather", inputs: ["table", "places"], outputs: ["rows"] },
      { op: "MatMul", inputs: ["x", "table"], outputs: ["mixed"] },
      { op: "Add", inputs: ["rows", "mixed"], outputs: ["moved"] },
      { op: "ReduceSum", inputs: ["moved"], outputs: ["sum"], attributes: { keepdims: 0n } },
    ],
  }),
);

interface Meta {
  hashes: Record<string, string>;
  stages: (Record<string, unknown> | null)[];
}

/** The file with another meta and other tensors, hashed and sealed again. */
function forged(change: (meta: Meta, texts: Map<string, string>) => void): readonly string[] {
  const read = readSafetensors(bytes);
  if (!read.ok) throw new Error("unreadable");
  const tensors = new Map(read.value);
  const decode = (name: string) => new TextDecoder().decode(tensors.get(name)!.bytes);
  const put = (name: string, text: string): string => {
    const own = new TextEncoder().encode(text);
    tensors.set(name, { type: "U8", shape: [own.length], bytes: own });
    return sha256(own);
  };
  const meta = JSON.parse(decode("meta")) as Meta;
  const texts = new Map<string, string>();
  change(meta, texts);
  for (const [name, text] of texts) {
    if (text === "") tensors.delete(name);
    else meta.hashes[name] = put(name, text);
    if (text === "") delete meta.hashes[name];
  }
  put("seal", put("meta", JSON.stringify(meta)));
  const loaded = tryLoad(writeSafetensors(tensors), { threads: 1 });
  return loaded.ok ? [] : loaded.diagnostics.map((d) => d.code);
}

function partOf(stage: number): string {
  const read = readSafetensors(bytes);
  return read.ok ? new TextDecoder().decode(read.value.get(`stage.${stage}.part`)!.bytes) : "";
}

describe("artifacts of models in stages", () => {
  it("hold each weight once, whatever the number of its stages", () => {
    const read = readSafetensors(bytes);
    const names = read.ok ? [...read.value.keys()] : [];
    expect(names.filter((n) => n.includes("weight."))).toHaveLength(1);
    expect(names.filter((n) => n.endsWith(".program")).length).toBeGreaterThanOrEqual(2);
  });

  it("are no artifact with one program, nor the other way round (ART002)", () => {
    const whole = readArtifact(bytes);
    expect(whole.ok ? [] : whole.diagnostics.map((d) => d.code)).toEqual(["ART002"]);
    const container = openContainer(bytes);
    if (!container.ok) throw new Error("unreadable");
    const { stages: _, ...meta } = container.value.meta;
    const read = readStages({ ...container.value, meta });
    expect(read.ok ? [] : read.diagnostics.map((d) => d.code)).toEqual(["ART002"]);
  });

  it("are refused where stages were taken out, moved, added or renamed (ART002, ART005)", () => {
    expect(forged(() => {})).toEqual([]);
    expect(forged((meta) => void meta.stages.pop())).toEqual(["ART002"]);
    expect(forged((meta) => void meta.stages.push(null))).toEqual(["ART002"]);
    expect(forged((meta) => void meta.stages.reverse())).toEqual(["ART005"]);
    expect(forged((_, texts) => void texts.set("stage.07.part", "x"))).toEqual(["ART002"]);
    expect(forged((_, texts) => void texts.set("stage.0.part", ""))).toEqual(["ART002"]);
    const shared = forged((meta) => {
      for (const stage of meta.stages) if (stage) stage.shared = ["nothing"];
    });
    expect(shared).toEqual(["ART002"]);
  });

  it("are refused where programs have other ports, values another type, tensors another stage", () => {
    const ports = forged((meta) => {
      Object.assign(meta.stages.find((stage) => stage)!, { inputs: [], outputs: [] });
    });
    expect(ports).toEqual(["ART005"]);
    // A part that promises more than its program makes.
    const promised = forged((_, texts) => {
      const more = partOf(0).replace("-> (mixed)", "-> (mixed, more)");
      texts.set("stage.0.part", more.replace(/\}\s*$/, "  more = neg(mixed) : f32[240]\n}\n"));
    });
    expect(promised).toEqual(["ART005"]);
    // The same names, and a rank that the stage before does not make.
    const retyped = forged((_, texts) => {
      const sum = `reduce(mixed) {kind: sum, axes: [0], keepDims: false} : f32[]`;
      const head = "(places: i64[nonZero], mixed: f32[240]) -> (sum) where 1 <= nonZero <= 20";
      texts.set("stage.2.part", `graph "graph" ${head} {\n  sum = ${sum}\n}\n`);
    });
    expect(retyped).toEqual(["ART002"]);
    const unused = forged((meta, texts) => {
      const reference = meta.stages.indexOf(null);
      texts.set(`stage.${reference}.graph`, partOf(reference));
    });
    expect(unused).toEqual(["ART002"]);
  });

  it("are refused where a stage takes what nothing made before it (ART002, ART005)", () => {
    const renamed = (stage: number) =>
      forged(
        (_, texts) =>
          void texts.set(`stage.${stage}.part`, partOf(stage).replace(/places/g, "other")),
      );
    const codes = [0, 1, 2, 3].flatMap((stage) => {
      try {
        return partOf(stage).includes("places") ? [renamed(stage)] : [];
      } catch (error) {
        if (error instanceof TypeError) return [];
        throw error;
      }
    });
    expect(codes.length).toBeGreaterThan(0);
    for (const [code] of codes) expect(code).toMatch(/^ART00[25]$/);
  });
});
