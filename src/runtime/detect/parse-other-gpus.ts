/** GPUs as rocminfo (AMD), system_profiler (Apple) and vulkaninfo (any vendor) list them. */
import { type DetectedGpu, detected } from "./machine-report.ts";
import { leadingInteger, parseFields, parseSize } from "./parse-fields.ts";

/** The agents of rocminfo that are GPUs, with their compute units and largest memory pool. */
export function parseRocminfo(text: string): readonly DetectedGpu[] {
  const agents = text.split(/^\*+\s*\nAgent \d+\s*\n\*+\s*$/m).slice(1);
  return agents
    .flatMap((agent) => {
      const [head = "", pools = ""] = agent.split(/^\s*Pool Info:/m);
      const fields = parseFields(head);
      if (fields.get("Device Type") !== "GPU") return [];
      const units = leadingInteger(fields.get("Compute Unit"));
      const clock = leadingInteger(fields.get("Max Clock Freq. (MHz)"));
      const l2 = parseSize(fields.get("L2"));
      const memory = largestPool(pools);
      return {
        name: fields.get("Marketing Name") || (fields.get("Name") ?? "unknown"),
        vendor: "AMD" as const,
        seenBy: "rocm",
        index: 0,
        ...(fields.has("Name") && { architecture: fields.get("Name")! }),
        ...(units !== undefined && { multiprocessors: detected(units, "rocminfo") }),
        ...(clock !== undefined && { clockMhz: detected(clock, "rocminfo") }),
        ...(l2 !== undefined && { l2Bytes: detected(l2, "rocminfo") }),
        ...(memory > 0 && { memoryBytes: detected(memory, "rocminfo") }),
      };
    })
    .map((gpu, index) => ({ ...gpu, index }));
}

function largestPool(pools: string): number {
  return pools.split(/^\s*Pool \d+\s*$/m).reduce((most, pool) => {
    const fields = parseFields(pool);
    if (!fields.get("Segment")?.startsWith("GLOBAL")) return most;
    return Math.max(most, parseSize(fields.get("Size")) ?? 0);
  }, 0);
}

const gpuVendors: readonly (readonly [RegExp, DetectedGpu["vendor"]])[] = [
  [/0x106b|Apple/i, "Apple"],
  [/0x1002|AMD|ATI/i, "AMD"],
  [/0x10de|NVIDIA/i, "NVIDIA"],
  [/0x8086|Intel/i, "Intel"],
];

function vendorOf(text: string): DetectedGpu["vendor"] {
  return gpuVendors.find(([pattern]) => pattern.test(text))?.[1] ?? "other";
}

/** `system_profiler SPDisplaysDataType`: one indented block a GPU. */
export function parseSystemProfiler(text: string): readonly DetectedGpu[] {
  const blocks = text.split(/^(?=[ \t]*Chipset Model:)/m).slice(1);
  return blocks.map((block, index) => {
    const fields = parseFields(block.split(/^\s*Displays:/m)[0]!);
    const vendor = vendorOf(fields.get("Vendor") ?? "");
    const cores = leadingInteger(fields.get("Total Number of Cores"));
    const memory = parseSize(fields.get("VRAM (Total)"));
    return {
      name: fields.get("Chipset Model") || "unknown",
      vendor,
      seenBy: "metal",
      index,
      unifiedMemory: vendor === "Apple",
      ...(cores !== undefined && { multiprocessors: detected(cores, "system_profiler") }),
      ...(memory !== undefined && { memoryBytes: detected(memory, "system_profiler") }),
    };
  });
}

/** `vulkaninfo --summary`: the devices that are GPUs; software renderers are left out. */
export function parseVulkaninfo(text: string): readonly DetectedGpu[] {
  const blocks = text.split(/^GPU\d+:\s*$/m).slice(1);
  return blocks
    .flatMap((block) => {
      const fields = parseFields(block, "=");
      const type = fields.get("deviceType") ?? "";
      if (!/_(DISCRETE|INTEGRATED|VIRTUAL)_GPU/.test(type)) return [];
      const driver = fields.get("driverInfo");
      return {
        name: fields.get("deviceName") || "unknown",
        vendor: vendorOf(fields.get("vendorID") ?? ""),
        seenBy: "vulkan",
        index: 0,
        ...(/INTEGRATED/.test(type) && { unifiedMemory: true }),
        ...(driver && { driver }),
      };
    })
    .map((gpu, index) => ({ ...gpu, index }));
}
