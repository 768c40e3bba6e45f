/** The targets, and one of them with every figure, how it is known and its source. */

import { runnableTargets } from "../../runtime/create-session.ts";
import { probeCuda } from "../../runtime/cuda/features.ts";
import { type Diagnostic, diagnostic, fail, ok } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Machine } from "../../target/machine.ts";
import type { Target } from "../../target/target.ts";
import { type FigureRow, figuresOf } from "../../target/walk-figures.ts";
import type { Action } from "../command.ts";
import { findMachine } from "../library/find-machine.ts";
import { printTable } from "./table.ts";

export const targetsAction: Action<{
  readonly action: "list" | "show";
  readonly name?: string | undefined;
}> = async ({ action, name }) => {
  if (action === "list") return name === undefined ? list() : fail(named(name));
  return name === undefined ? fail(unnamed()) : show(name);
};

function unnamed(): Diagnostic {
  return diagnostic("CLI001", "targets show needs a name", {
    help: "for example wavetile targets show h200, or the path of a target file",
  });
}

function named(name: string): Diagnostic {
  return diagnostic("CLI001", `targets list takes no name, and got ${JSON.stringify(name)}`, {
    help: `for one target: wavetile targets show ${name}`,
  });
}

function list() {
  const gpu = probeCuda();
  const here = [...runnableTargets().names, ...(gpu.ok ? gpu.value.targets : [])];
  const rows = [...targets.values()].map((t) => ({
    name: t.name,
    summary: t.summary,
    runsHere: here.includes(t.name),
    use: t.emitter ?? "planning",
  }));
  const text = printTable(
    ["target", "here", "code", "what"],
    rows.map((r) => [r.name, r.runsHere ? "yes" : "no", r.use, r.summary]),
    [],
  );
  return ok({ data: { targets: rows }, text });
}

function show(name: string) {
  const found = findMachine(name);
  if (!found.ok) return found;
  const target = found.value;
  const file = fileOf(target);
  const data = { ...target, capabilities: [...target.capabilities], ...(file && { file }) };
  return ok({ data, text: describe(target), target: target.name });
}

/** What a target file of this machine holds. */
function fileOf({ name, summary, emitter, machine }: Target) {
  return machine && { name, summary, ...(emitter && { emitter }), machine };
}

function describe(target: Target): string {
  const code = target.emitter ?? "none: known for planning only";
  const head = [
    `${target.name}: ${target.summary}`,
    `code: ${code}`,
    `capabilities: ${[...target.capabilities].join(", ") || "none"}`,
    ...(target.machine ? machineLines(target.machine) : []),
    "",
  ];
  return [...head, printFigures(figuresOf(target))].join("\n");
}

/** A row a figure; the sources, which are long and repeat, stand below by number. */
function printFigures(figures: readonly FigureRow[]): string {
  const sources = [...new Set(figures.map((f) => f.source))];
  const rows = figures.map((f) => [
    f.path.replace(/^machine\./, ""),
    Number.isInteger(f.value) ? String(f.value) : String(Number(f.value.toPrecision(8))),
    f.per,
    f.origin,
    `[${sources.indexOf(f.source) + 1}]`,
  ]);
  const table = printTable(["figure", "value", "per", "known by", "source"], rows, [1]);
  return [table, "", ...sources.map((source, i) => `[${i + 1}] ${source}`)].join("\n");
}

/** `8..256 by 8` where the numbers are evenly spaced, else all of them. */
function printExtents(numbers: readonly number[]): string {
  const [first = 0, second = 0] = numbers;
  const step = second - first;
  const even = numbers.length > 3 && numbers.every((n, i) => n === first + i * step);
  return even ? `${first}..${numbers.at(-1)} by ${step}` : numbers.join(",");
}

function machineLines(machine: Machine): readonly string[] {
  const links = machine.links.map((l) => [l.kind, l.generation].filter(Boolean).join(" "));
  const shared = [
    ...(machine.memoryKind ? [`memory: ${machine.memoryKind}`] : []),
    ...(links.length > 0 ? [`links, each way: ${links.join(", ")}`] : []),
  ];
  if (machine.kind === "cpu") {
    const units = machine.matrixExtensions.map((e) => `${e.name} on ${e.operands}`);
    const extensions = units.length > 0 ? [`matrix extensions: ${units.join(", ")}`] : [];
    return [`instruction set: ${machine.instructionSet}`, ...extensions, ...shared];
  }
  const { architecture: a } = machine;
  const matrix = a.matrixInstructions.map(
    (i) =>
      `  ${i.name} ${i.operands} into ${i.accumulators.join("|")}: m ${printExtents(i.m)}, n ${printExtents(i.n)}, k ${printExtents(i.k)}`,
  );
  const capability = a.computeCapability ? `, compute capability ${a.computeCapability}` : "";
  return [`architecture: ${a.name}${capability}`, ...shared, "matrix instructions:", ...matrix];
}
