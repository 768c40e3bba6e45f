import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OpenModel, openModel, startSession } from "../commands/library/open-model.ts";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { tensor } from "../commands/library/tensor.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import {
  readSafetensors,
  type Safetensor,
  writeSafetensors,
} from "../frontend/safetensors/safetensors.ts";
import { printGraph } from "../graph/graph-text.ts";
import { lowerProgram } from "../lower/lower-program.ts";
import { printProgram } from "../program/program-text.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { Result } from "../support/diagnostic.ts";
import { sha256 } from "../support/hash.ts";
import { looksLikeArtifact } from "./artifact.ts";
import { readArtifact } from "./read-artifact.ts";
import { type ArtifactContent, writeArtifact } from "./write-artifact.ts";

const opened = openModel(
  { bytes: sampleModel(48) },
  { target: "wasm", shapes: { M: { min: 1, max: 8 } }, seed: 3 },
);
if (!opened.ok) throw new Error(opened.diagnostics.map((d) => d.message).join());
const content = withFixedSchedule(opened.value);
const bytes = writeArtifact(content);

/** The model under one schedule whatever the search would choose: the tests edit the text of its program. */
function withFixedSchedule({ artifact, origin, target }: OpenModel): ArtifactContent {
  const { nests, regions } = origin!.compiled;
  const schedule = taken(
    parseSchedule(`schedule "S0" for "wasm" {
      split S0:i by 4 -> i_o i_r
      unroll S0:i_r
      split S0:j by 16 -> j_o j_i
      split S0:j_i by 4 -> j_u j_l
      unroll S0:j_u
      vectorize S0:j_l
      reorder S0:(i_o, j_o, k, i_r, j_u, j_l)
    }`),
  );
  const scheduled = [taken(applySchedule(regions[0]!.scheduled.region, schedule))];
  const { program } = taken(lowerProgram({ nests, scheduled, requires: [], states: [] }, target));
  return { ...artifact, targets: new Map([["wasm", { program, schedules: [schedule] }]]) };
}

function taken<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map((d) => d.message).join());
}

function codeOf(file: Uint8Array): string {
  const result = readArtifact(file);
  return result.ok ? "ok" : result.diagnostics[0]!.code;
}

/** The artifact with some tensors replaced, and, if asked, hashes that agree with them. */
function changed(
  edit: (tensors: Map<string, Safetensor>) => void,
  rehash: boolean,
  original = bytes,
): Uint8Array {
  const read = readSafetensors(original);
  if (!read.ok) throw new Error("unreadable");
  const tensors = new Map(read.value);
  edit(tensors);
  if (rehash) {
    const meta = JSON.parse(text(tensors.get("meta")!)) as { hashes: Record<string, string> };
    for (const name of Object.keys(meta.hashes)) {
      const tensor = tensors.get(name);
      if (tensor) meta.hashes[name] = sha256(tensor.bytes);
    }
    const spelled = textTensor(JSON.stringify(meta));
    tensors.set("meta", spelled);
    tensors.set("seal", textTensor(sha256(spelled.bytes)));
  }
  return writeSafetensors(tensors);
}

function text(tensor: Safetensor): string {
  return new TextDecoder().decode(tensor.bytes);
}

function textTensor(spelled: string): Safetensor {
  const data = new TextEncoder().encode(spelled);
  return { type: "U8", shape: [data.length], bytes: data };
}

function replaceText(name: string, from: string, to: string) {
  return (tensors: Map<string, Safetensor>): void => {
    const before = text(tensors.get(name)!);
    expect(before).toContain(from);
    tensors.set(name, textTensor(before.replace(from, to)));
  };
}

describe("artifact", () => {
  it("reads back what was written, byte for byte", () => {
    const read = readArtifact(bytes);
    if (!read.ok) throw new Error(read.diagnostics.map((d) => d.message).join());
    expect(looksLikeArtifact(bytes)).toBe(true);
    expect(looksLikeArtifact(sampleModel())).toBe(false);
    expect(printGraph(read.value.graph)).toBe(printGraph(content.graph));
    const code = content.targets.get("wasm")!;
    expect(printProgram(read.value.targets.get("wasm")!.program)).toBe(printProgram(code.program));
    expect(read.value.targets.get("wasm")!.schedules).toEqual(code.schedules);
    expect(read.value.meta.seed).toBe(3);
    expect(writeArtifact(read.value)).toEqual(bytes);
  });

  it("refuses texts that were changed (ART003) and parts that do not fit", () => {
    const program = "target.wasm.program";
    expect(codeOf(changed(replaceText("graph", "24", "25"), false))).toBe("ART003");
    expect(codeOf(changed((t) => t.delete("graph"), false))).toBe("ART002");
    expect(codeOf(changed((t) => t.set("other", textTensor("x")), true))).toBe("ART002");
    expect(codeOf(changed(replaceText("meta", '"seed"', '"sead"'), true))).toBe("ART002");
    expect(codeOf(changed(replaceText("meta", "x:0", "x:1"), false))).toBe("ART003");
    expect(codeOf(changed((t) => t.delete("seal"), false))).toBe("ART002");
    expect(codeOf(changed(replaceText(program, 'for "wasm"', 'for "tpu"'), true))).toBe("ART005");
    expect(codeOf(changed(replaceText(program, "{", "("), true))).toBe("TXT001");
  });

  it("refuses programs and ports that belong to another model (ART005)", () => {
    const program = "target.wasm.program";
    const printed = printProgram(content.targets.get("wasm")!.program);
    for (const [arena, other] of [
      ["weights", "scratch"],
      ["caller", "weights"],
      ["caller", "state"],
    ]) {
      expect(printed).toContain(`at ${arena} + (`);
      const moved = replaceText(program, `at ${arena} + (`, `at ${other} + (`);
      expect(codeOf(changed(moved, true))).toBe("ART005");
    }
    for (const [from, to] of [
      [": input memory f32 [", ": input memory i32 ["],
      [": output memory f32 [", ": output memory f16 ["],
      [": input memory f32 [M, 24]", ": input memory f32 [24, M]"],
      [": input memory f32 [M, 24]", ": input memory f32x4 [M, 24]"],
    ] as const) {
      expect(codeOf(changed(replaceText(program, from, to), true))).toBe("ART005");
    }
    const [port] = content.meta.inputs;
    const renamed = replaceText("meta", `"value": "${port!.value}"`, '"value": "another"');
    expect(codeOf(changed(renamed, true))).toBe("ART005");
  });

  it("refuses programs that are not proved right, with the validator's code and a cure", () => {
    const program = "target.wasm.program";
    const edited = (...edits: readonly (readonly [string, string])[]): Uint8Array =>
      changed((tensors) => {
        for (const [from, to] of edits) replaceText(program, from, to)(tensors);
      }, true);
    const twice = [
      "launch S0 after previous",
      "launch S0 after counters signal done[0] by 1\n    launch S0 after counters wait done[0] for 1",
    ] as const;
    const counter = ["  kernel S0", "  counter done : memory monotone [1]\n  kernel S0"] as const;
    const cases = [
      ["ok", edited(counter, twice)],
      // A dropped wait.
      ["PRG030", edited(counter, [twice[0], twice[1].replace(" wait done[0] for 1", "")])],
      // A threshold that is never reached.
      ["PRG040", edited(counter, [twice[0], twice[1].replace("for 1", "for 2")])],
      // Indices, tails and tiles off by one.
      ["PRG010", edited(["load.f32 x_0[4*i_o, k]", "load.f32 x_0[4*i_o + 1, k + 1]"])],
      ["PRG010", edited(["if M - 4*i_o - 4 >= 0", "if M - 4*i_o - 3 >= 0"])],
      ["PRG010", edited(["for k < 24", "for k < 25"])],
      ["PRG020", edited(["for j_o < 3", "for j_o < 2"])],
      ["PRG020", edited(["for i_o < floorDiv(M + 3, 4)", "for i_o < floorDiv(M + 2, 4)"])],
      ["PRG021", edited(["store acc0[0, 0] = f32x4(0)", "store acc0[0, 1] = f32x4(0)"])],
      // Storage shared by what lives at once.
      ["PRG050", edited(["at caller + (768)", "at caller + (764)"])],
    ] as const;
    expect(cases.map(([, file]) => codeOf(file))).toEqual(cases.map(([code]) => code));
    const refused = readArtifact(cases[3][1]);
    expect(!refused.ok && refused.diagnostics[0]).toMatchObject({
      at: `${program}, kernel S0 role main`,
      help: expect.stringContaining("optimize the model again"),
    });
    const notes = refused.ok ? [] : (refused.diagnostics[0]!.notes ?? []);
    expect(notes.join("; ")).toMatch(/outside at k = 23/);
  });

  it("refuses numbers that no proof can compute with, and values that are bound twice", () => {
    const program = "target.wasm.program";
    const edited = (from: string, to: string) => changed(replaceText(program, from, to), true);
    for (const extent of [2 ** 53 - 1, 2 ** 52]) {
      expect(codeOf(edited("for k < 24", `for k < ${extent}`))).toMatch(/^PRG0[16]0$/);
      expect(codeOf(edited("k]", `${extent}*k]`))).toMatch(/^PRG0[16]0$/);
    }
    const [line] = /^ +let .*\n/m.exec(printProgram(content.targets.get("wasm")!.program))!;
    expect(codeOf(edited(line, line + line))).toBe("PRG001");
  });

  it("checks indices that data give in every run, whatever the program says of them", () => {
    const model = writeModel({
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [4, 3] }],
      outputs: ["y"],
      weights: { k: tensor("i64", [2], [3n, 1n]) },
      nodes: [{ op: "Gather", inputs: ["x", "k"], outputs: ["y"] }],
    });
    const wish = { target: "wasm", shapes: {}, seed: 3 };
    const { artifact } = taken(openModel({ bytes: model }, wish));
    const written = writeArtifact(artifact);
    const program = "target.wasm.program";
    expect(text(taken(readSafetensors(written)).get(program)!)).toContain("< 4 proved");
    const codes = ["3, 1", "4, 1", "1000000, 1"].map((values) => {
      const file = changed(replaceText("graph", "3, 1", values), true, written);
      const session = taken(startSession(taken(openModel({ bytes: file }, wish)), 1));
      const run = session.run({ x: tensor("f32", [4, 3], new Float32Array(12)) });
      return run.ok ? "ok" : run.diagnostics[0]!.code;
    });
    expect(codes).toEqual(["ok", "RUN006", "RUN006"]);
  });

  it("refuses a target that is unknown here (ART006)", () => {
    const code = content.targets.get("wasm")!;
    const program = { ...code.program, target: "tpu" };
    const targets = new Map([["tpu", { program, schedules: [] }]]);
    expect(codeOf(writeArtifact({ ...content, targets }))).toBe("ART006");
  });

  it("refuses weights that do not fit (ART004)", () => {
    const stored = content.graph.weights.filter((w) => w.source.kind === "stored");
    const edit = (tensors: Map<string, Safetensor>): void => {
      for (const [name, tensor] of tensors) {
        if (name.startsWith("weight.")) tensors.set(name, { ...tensor, type: "I32" });
      }
    };
    expect(stored).not.toEqual([]);
    expect(codeOf(changed(edit, true))).toBe("ART004");
  });

  it("notices every changed byte but those of names and padding", () => {
    const read = readSafetensors(bytes);
    if (!read.ok) throw new Error("unreadable");
    for (const [name, tensor] of read.value) {
      const flip = (t: Map<string, Safetensor>): void => {
        const data = tensor.bytes.slice();
        data[data.length >> 1]! ^= 1;
        t.set(name, { ...tensor, bytes: data });
      };
      expect([name, codeOf(changed(flip, false))]).toEqual([name, "ART003"]);
    }
  });

  it("answers any damage with diagnostics", () => {
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (at, byte, end) => {
        const damaged = bytes.slice(0, end);
        if (at < end) damaged[at] = byte;
        expect(codeOf(damaged)).toMatch(/^(ok|ART\d+)$/);
      }),
      { numRuns: 100 },
    );
  });

  it("answers damaged texts with right hashes with diagnostics", () => {
    const names = ["graph", "target.wasm.program", "target.wasm.schedules"];
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.nat(),
        fc.nat(),
        fc.integer({ min: 32, max: 126 }),
        (name, at, cut, byte) => {
          const file = changed((tensors) => {
            const data = tensors.get(name)!.bytes.slice();
            data[at % data.length] = byte;
            const kept = cut % 4 === 0 ? data.subarray(0, cut % data.length) : data;
            tensors.set(name, { type: "U8", shape: [kept.length], bytes: kept });
          }, true);
          expect(codeOf(file)).toMatch(/^(ok|[A-Z]{3}\d{3})$/);
        },
      ),
      { numRuns: 100 },
    );
  });
});
