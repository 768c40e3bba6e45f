/**
 * Output of nvidia-smi: the CSV of `--query-gpu=… --format=csv` with its header line, read by the names
 * of the columns, and the table that it prints without arguments. Boards that share the CPU's memory
 * show `[N/A]` for it.
 */
import { parseComputeCapability } from "../../target/compute-capability.ts";
import { type DetectedGpu, detected } from "./machine-report.ts";
import { leadingInteger, leadingNumber } from "./parse-fields.ts";

const mebibyte = 2 ** 20;

/** Undefined when the text has no header with a name column. */
export function parseNvidiaSmiCsv(text: string): readonly DetectedGpu[] | undefined {
  const lines = text.split("\n").filter((line) => line.includes(","));
  const header = (lines[0] ?? "").split(",").map((h) => h.replace(/\[.*\]/, "").trim());
  if (!header.includes("name")) return undefined;
  return lines.slice(1).map((line, row) => {
    const cells = line.split(",").map((c) => c.trim());
    const cell = (name: string): string | undefined => {
      const value = cells[header.indexOf(name)];
      return value === undefined || /N\/A|Not Supported|Unknown/i.test(value) ? undefined : value;
    };
    return gpuOfRow(cell, row);
  });
}

function gpuOfRow(cell: (name: string) => string | undefined, row: number): DetectedGpu {
  const source = "nvidia-smi --query-gpu";
  const capability = cell("compute_cap");
  const total = leadingNumber(cell("memory.total"));
  const free = leadingNumber(cell("memory.free"));
  const clock = leadingNumber(cell("clocks.max.sm"));
  const driver = cell("driver_version");
  return {
    name: cell("name") ?? "unknown",
    vendor: "NVIDIA",
    seenBy: "nvidia-smi",
    index: leadingInteger(cell("index")) ?? row,
    ...(capability && parseComputeCapability(capability) && { computeCapability: capability }),
    ...(total !== undefined && { memoryBytes: detected(total * mebibyte, source) }),
    ...(free !== undefined && { freeBytes: detected(free * mebibyte, source) }),
    ...(clock !== undefined && { clockMhz: detected(clock, source) }),
    ...(driver && { driver }),
  };
}

/** The table: name on one line of a board, memory on the next. Undefined when it is none. */
export function parseNvidiaSmiTable(text: string): readonly DetectedGpu[] | undefined {
  const driver = /(?:Driver|KMD) Version:\s*([\d.]+)/.exec(text)?.[1];
  if (driver === undefined) return undefined;
  const gpus: DetectedGpu[] = [];
  for (const line of text.split("\n")) {
    const board = /^\|\s*(\d+)\s{1,3}(\S.*?)\s{2,}(?:On|Off|N\/A|Disabled|Enabled)\s*\|/.exec(line);
    if (board) {
      gpus.push({
        name: board[2]!,
        vendor: "NVIDIA",
        seenBy: "nvidia-smi",
        index: Number(board[1]),
        driver,
      });
      continue;
    }
    const memory = /\|\s*(\d+)MiB \/\s*(\d+)MiB \|/.exec(line);
    const last = gpus.at(-1);
    if (!memory || !last || last.memoryBytes) continue;
    const [used, total] = [Number(memory[1]), Number(memory[2])];
    gpus[gpus.length - 1] = {
      ...last,
      memoryBytes: detected(total * mebibyte, "nvidia-smi"),
      freeBytes: detected((total - used) * mebibyte, "nvidia-smi"),
    };
  }
  return gpus;
}
