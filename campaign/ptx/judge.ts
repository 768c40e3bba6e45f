/** NVIDIA's assembler and disassembler as judges of one module: what they say of it against what it states. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PtxCounts, PtxKernel, PtxModule } from "../../src/emit/ptx/ptx-module.ts";
import { estimateRegisters } from "../../src/emit/ptx/register-pressure.ts";
import type { GpuArchitecture } from "../../src/target/machine.ts";

/** Paths. */
export interface Judges {
  readonly ptxas: string;
  readonly nvdisasm: string;
}

/** How far an estimate of registers may be from what ptxas takes, as their quotient. */
const [leastOfTaken, mostOfTaken] = [1 / 3, 2.5] as const;

/**
 * What is wrong: not assembled, performance lost, spills, registers or shared memory beyond what is stated, an
 * estimate of registers that is none, other counts of instructions in machine code.
 *
 * @param onEstimate told of each kernel what is estimated over what ptxas takes
 */
export async function judge(
  module: PtxModule,
  architecture: GpuArchitecture,
  { ptxas, nvdisasm }: Judges,
  onEstimate: (ofTaken: number) => void,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "wavetile-ptx-"));
  try {
    const [text, cubin] = [join(folder, "k.ptx"), join(folder, "k.cubin")];
    await writeFile(text, module.text);
    const made = await said(ptxas, [`-arch=${architecture.ptxTarget}`, "-v", text, "-o", cubin]);
    const words = made.stdout + made.stderr;
    if (!made.ok) return words.slice(0, 500);
    const lost = words.split("\n").find((line) => /C75\d\d|Performance Loss/.test(line));
    if (lost !== undefined) return lost;
    for (const kernel of module.kernels) {
      const wrong = resourcesDiffer(kernel, words, onEstimate);
      if (wrong !== undefined) return wrong;
    }
    // Nothing to count: disassembling is half of the time.
    if (module.kernels.every((k) => Object.values(k.counts).every((n) => n === 0)))
      return undefined;
    const code = await said(nvdisasm, ["-c", cubin]);
    if (!code.ok) return `nvdisasm: ${code.stderr.slice(0, 200)}`;
    return machineCodeDiffers(module, code.stdout, architecture);
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Said {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a judge says and whether it ended well; throws where it did not start. */
function said(judge: string, args: readonly string[]): Promise<Said> {
  return new Promise((resolve, reject) => {
    execFile(judge, args, { encoding: "utf8", maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") reject(error);
      else resolve({ ok: !error, stdout, stderr });
    });
  });
}

/** What `ptxas -v` says of the entry against what the kernel states. */
function resourcesDiffer(
  kernel: PtxKernel,
  said: string,
  onEstimate: (ofTaken: number) => void,
): string | undefined {
  const part = said
    .split("Compiling entry function '")
    .find((p) => p.startsWith(`${kernel.entry}'`));
  if (!part) return `ptxas says nothing of ${kernel.entry}`;
  const number = (pattern: RegExp): number => Number(pattern.exec(part)?.[1] ?? Number.NaN);
  const [stack, stores] = [number(/(\d+) bytes stack frame/), number(/(\d+) bytes spill stores/)];
  const registers = number(/Used (\d+) registers/);
  if (stores !== 0) return `${kernel.name} spills ${stores} bytes`;
  if (stack !== 0 && !kernel.usesLocalMemory) return `${kernel.name} has a stack of ${stack} bytes`;
  if (!(registers <= kernel.maxRegisters)) {
    return `${kernel.name} takes ${registers} registers of ${kernel.maxRegisters}`;
  }
  const ofTaken = estimateRegisters(kernel) / registers;
  onEstimate(ofTaken);
  if (!(ofTaken >= leastOfTaken && ofTaken <= mostOfTaken)) {
    return `${kernel.name} is estimated at ${estimateRegisters(kernel)} registers and takes ${registers}`;
  }
  const shared = Number(/(\d+) bytes smem/.exec(part)?.[1] ?? 0);
  if (shared !== kernel.staticSharedBytes) {
    return `${kernel.name} declares ${shared} bytes of shared memory, not ${kernel.staticSharedBytes}`;
  }
  return undefined;
}

/** How often each instruction stands in machine code. */
const mnemonics: Readonly<Record<keyof PtxCounts, RegExp>> = {
  wgmma: /\b[HIQ]GMMA\./g,
  wgmmaWaits: /\bWARPGROUP\.DEPBAR/g,
  mma: /\b[HIQD]MMA\./g,
  tensorCopies: /\bUTMA(LDG|STG)\b/g,
  peerStores: /\bSTAS\b/g,
  asyncCopies: /\bLDGSTS\./g,
  matrixLoads: /\bLDSM\./g,
};

/** Products of 8-bit floats of which the assembler makes two of f16 each. */
function widenedProducts({ text }: PtxKernel, { features }: GpuArchitecture): number {
  if (features.includes("fp8-mma")) return 0;
  return text.match(/\bmma\.sync\S*\.e[45]m[23]\./g)?.length ?? 0;
}

function machineCodeDiffers(
  module: PtxModule,
  code: string,
  architecture: GpuArchitecture,
): string | undefined {
  const parts = code.split(/^\s*\.section\s+\.text\./m).slice(1);
  for (const kernel of module.kernels) {
    const part = parts.find((p) => p.startsWith(`${kernel.entry},`));
    if (part === undefined) return `no machine code of ${kernel.entry}`;
    for (const [name, pattern] of Object.entries(mnemonics)) {
      const found = part.match(pattern)?.length ?? 0;
      const widened = name === "mma" ? widenedProducts(kernel, architecture) : 0;
      const wanted = kernel.counts[name as keyof PtxCounts] + widened;
      if (found !== wanted)
        return `${kernel.name}: ${found} of ${name} in machine code, not ${wanted}`;
    }
  }
  return undefined;
}
