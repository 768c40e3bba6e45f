/**
 * A few small models through every form, in text: as imported, after the graph passes, as nests, as
 * regions with their schedules and trees, as a program with its memory, as an artifact. Each text
 * parses back to the value that was printed, and a second compile prints the same.
 */
import { describe, expect, it } from "vitest";
import { printTree } from "../../src/affine/index.ts";
import { type ArtifactContent, writeArtifact } from "../../src/artifact/write-artifact.ts";
import { linkStates } from "../../src/commands/library/link-states.ts";
import { parseShapes } from "../../src/commands/library/load.ts";
import { type OpenModel, openModel } from "../../src/commands/library/open-model.ts";
import { type ImportedModel, importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { readSafetensors } from "../../src/frontend/safetensors/safetensors.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { parseGraph, printGraph } from "../../src/graph/graph-text.ts";
import { prepareModel } from "../../src/graph/prepare.ts";
import type { MemoryPlan } from "../../src/lower/memory-plan.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { buildNests } from "../../src/region/builders/build-nests.ts";
import type { NestProgram, Region } from "../../src/region/nest.ts";
import { parseNests, parseRegion } from "../../src/region/nest-reader.ts";
import {
  canonicalNests,
  canonicalStatement,
  printNests,
  printRegion,
} from "../../src/region/nest-text.ts";
import { parseSchedule, printSchedule } from "../../src/schedule/directive-text.ts";
import { scheduleTree } from "../../src/schedule/tree/tree.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { sha256 } from "../../src/support/hash.ts";
import { checkGolden } from "./golden-file.ts";
import type { Sections } from "./golden-sections.ts";
import { type SampleModel, sampleModels } from "./sample-models.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

/** The model before and after the graph passes; compiled, or why it cannot be. */
interface Stages {
  readonly imported: ImportedModel;
  readonly graph: Graph;
  readonly nests: NestProgram;
  readonly opened: Result<OpenModel>;
}

function stagesOf({ bytes, shapes, states }: SampleModel): Stages {
  const parsed = unwrap(parseShapes(shapes));
  const read = unwrap(importOnnx(bytes(), { shapes: parsed }));
  const imported = unwrap(linkStates(read, states ?? {}));
  const { graph } = prepareModel(imported);
  const options = { target: "wasm", shapes: parsed, seed: 0, ...(states && { states }) };
  const opened = openModel({ bytes: bytes() }, options);
  const nests = opened.ok ? opened.value.origin!.compiled.nests : unwrap(buildNests(graph));
  return { imported, graph, nests, opened };
}

function sectionsOf({ imported, graph, nests, opened }: Stages): Sections {
  const sections = new Map([
    ["graph as imported", printGraph(imported.graph)],
    ["graph", printGraph(graph)],
    ["nests", printNests(nests)],
  ]);
  if (!opened.ok) {
    sections.set("refusal", `${opened.diagnostics.map(formatDiagnostic).join("\n")}\n`);
    return sections;
  }
  const { artifact, origin } = opened.value;
  const { regions, plan } = origin!.compiled;
  for (const { name, scheduled } of regions) {
    sections.set(`region ${name}`, printRegion(scheduled.region));
    sections.set(`schedule ${name}`, printSchedule(scheduled.schedule));
    sections.set(`tree ${name}`, printTree(unwrap(scheduleTree(scheduled))));
  }
  sections.set("program", printProgram(plan.program));
  sections.set("memory", memoryText(plan));
  sections.set("artifact", artifactText(artifact));
  return sections;
}

/** Bytes of each arena, and how near the scratch peak is to its bound. */
function memoryText({ arenas, scratchLowerBound }: MemoryPlan): string {
  const lines = Object.entries(arenas).map(([name, bytes]) => `${name} ${bytes}`);
  return `${lines.join("\n")}\nscratch lower bound ${scratchLowerBound}\n`;
}

/** The tensors of the file and its manifest, in which a hash stands as what it is the hash of. */
function artifactText(artifact: ArtifactContent): string {
  const tensors = unwrap(readSafetensors(writeArtifact(artifact)));
  const text = (name: string): string => new TextDecoder().decode(tensors.get(name)!.bytes);
  const list = [...tensors].map(([name, t]) => {
    // The length of a text changes with every comma of it.
    const isText = name === "meta" || name === "graph" || name.startsWith("target.");
    return `${name}: ${t.type}[${isText ? "text" : t.shape.join(", ")}]`;
  });
  const meta = JSON.parse(text("meta")) as { producer: string; hashes: Record<string, string> };
  const hashes = Object.entries(meta.hashes).map(([name, hash]) => {
    return [name, hash === sha256(tensors.get(name)!.bytes) ? "of its bytes" : hash];
  });
  const shown = { ...meta, producer: "VERSION", hashes: Object.fromEntries(hashes) };
  return `${list.join("\n")}\n${JSON.stringify(shown, null, 1)}\n`;
}

const canonicalRegion = (region: Region): Region => ({
  ...region,
  statements: region.statements.map(canonicalStatement),
});

describe.each(sampleModels)("$name", (sample) => {
  const stages = stagesOf(sample);
  const { imported, graph, nests, opened } = stages;
  const sections = sectionsOf(stages);
  const text = (name: string): string => sections.get(name)!;

  it("is, in every form, what was last looked at", () => {
    checkGolden(`models/${sample.name}.txt`, `${sample.name}: ${sample.about}`, sections);
  });

  it("parses back from every form", () => {
    expect(unwrap(parseGraph(text("graph as imported")))).toEqual(imported.graph);
    expect(unwrap(parseGraph(text("graph")))).toEqual(graph);
    expect(unwrap(parseNests(text("nests")))).toEqual(canonicalNests(nests));
    if (!opened.ok) return;
    const { regions, plan } = opened.value.origin!.compiled;
    for (const { name, scheduled } of regions) {
      const region = unwrap(parseRegion(text(`region ${name}`)));
      expect(region).toEqual(canonicalRegion(scheduled.region));
      expect(unwrap(parseSchedule(text(`schedule ${name}`)))).toEqual(scheduled.schedule);
    }
    expect(unwrap(parseProgram(text("program")))).toEqual(plan.program);
  });

  it("is the same in every form, and the same bytes, when it is compiled again", () => {
    const again = stagesOf(sample);
    expect(sectionsOf(again)).toEqual(sections);
    if (!opened.ok || !again.opened.ok) return;
    const [first, second] = [opened.value, again.opened.value].map((o) =>
      writeArtifact(o.artifact),
    );
    expect(second).toEqual(first);
  });
});
