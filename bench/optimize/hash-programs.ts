/**
 * `npx tsx bench/optimize/hash-programs.ts [--only TEXT …]`: a line a model and target with hashes of what the
 * compiler chose (schedules) and made (program), and the price it expects; on stderr the processor time of
 * compiling. Two commits whose lines are equal compile these models to the same bytes.
 */
import { compileModel } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { printSchedule } from "../../src/schedule/directive-text.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { sha256Text } from "../../src/support/hash.ts";
import { targets } from "../../src/target/index.ts";
import { fetchModel, modelPath } from "../models/fetch.ts";
import { findModel } from "../models/table.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";

const models = [
  ...["mobilenet-v2", "mobilenet-v2-int8", "light-shufflenet", "light-squeezenet", "resnet-50"],
  ...["minilm-l6", "minilm-l6-fp16", "gpt-2-step", "vit-b", "whisper-tiny-encoder", "moe-block"],
  ...["ppocr-v2-cls", "ppocr-v4-rec", "gpt-2", "light-densenet121", "ppocr-v4-det"],
];
const targetNames = ["wasm", "x64-avx2", "x64-avx512", "h100"];

const only = process.argv.slice(2).filter((a) => a !== "--only");
const short = (text: string): string => sha256Text(text).slice(0, 16);

for (const name of models) {
  for (const targetName of targetNames) {
    const title = `${name}/${targetName}`;
    if (only.length > 0 && !only.some((text) => title.includes(text))) continue;
    const row = findModel(name)!;
    const target = targets.get(targetName)!;
    const path = modelPath(row);
    const hints = { shapes: row.shapes ?? {}, ...(path !== undefined && { path }) };
    const imported = unwrap(importOnnx(unwrap(fetchModel(row)), importOptions(hints)));
    const before = process.cpuUsage();
    const compiled = compileModel(imported, { target });
    const { user, system } = process.cpuUsage(before);
    process.stderr.write(`${title} ${((user + system) / 1e6).toFixed(2)} s\n`);
    if (!compiled.ok) {
      process.stdout.write(`${title} ${compiled.diagnostics.map(formatDiagnostic).join("; ")}\n`);
      continue;
    }
    const { regions, plan, certificate } = compiled.value;
    const schedules = regions.map((r) => printSchedule(r.scheduled.schedule)).join("\n");
    const others = regions.flatMap((r) => r.alternatives.map(printSchedule)).join("\n");
    const prices = regions.map((r) => [r.price.estimateNs, r.price.boundNs, r.funnel]);
    const told = [certificate.objectivePs, certificate.boundPs, certificate.work, prices];
    const hashes = [schedules, printProgram(plan.program), others, JSON.stringify(told)].map(short);
    process.stdout.write(`${title} ${hashes.join(" ")}\n`);
  }
}
