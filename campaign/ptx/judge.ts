/** NVIDIA's assembler and disassembler as judges of one module: what they say of it against what it states. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PtxCounts, PtxKernel, PtxModule } from "../../src/emit/ptx/ptx-module.ts";
import { estimateRegisters } from "../../src/emit/ptx/register-pressure.ts";
import type { GpuArchitecture } from "../../src/target/machine.ts";
import { codeOf, type Disassembler, type limited } from "./machine-code.ts";
import { said } from "./run-judge.ts";

export interface Judges {
  /** Path. */
  readonly ptxas: string;
  readonly disassembler: Disassembler;
  readonly limit: ReturnType<typeof limited>;
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
  { ptxas, disassembler, limit }: Judges,
  onEstimate: (ofTaken: number) => void,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "wavetile-ptx-"));
  try {
    const [text, cubin] = [join(folder, "k.ptx"), join(folder, "k.cubin")];
    await writeFile(text, module.text);
    const target = `-arch=${architecture.ptxTarget}`;
    const made = await limit(() => said(ptxas, [target, "-v", text, "-o", cubin]));
    const words = made.stdout + made.stderr;
    if (!made.ok) return words.slice(0, 500);
    const lost = words.split("\n").find((line) => /C75\d\d|Performance Loss/.test(line));
    if (lost !== undefined) return lost;
    for (const kernel of module.kernels) {
      const wrong = resourcesDiffer(kernel, words, onEstimate);
      if (wrong !== undefined) return wrong;
    }
    const code = codeOf(await readFile(cubin));
    const by = { architecture, disassembler };
    const wrong = await Promise.all(module.kernels.map((k) => machineCodeDiffers(k, code, by)));
    return wrong.find((w) => w !== undefined);
  } finally {
    await rm(folder, { recursive: true });
  }
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

/** Also of a kernel that has none of them: what is disassembled is what shows that. */
async function machineCodeDiffers(
  kernel: PtxKernel,
  codes: ReadonlyMap<string, Uint8Array>,
  by: { readonly architecture: GpuArchitecture; readonly disassembler: Disassembler },
): Promise<string | undefined> {
  const code = codes.get(kernel.entry);
  if (code === undefined) return `no machine code of ${kernel.entry}`;
  const text = await by.disassembler.instructions(by.architecture.ptxTarget!, code);
  if (!/\bEXIT\b/.test(text)) return `${kernel.name}: no machine code was read`;
  for (const [name, pattern] of Object.entries(mnemonics)) {
    const found = text.match(pattern)?.length ?? 0;
    const widened = name === "mma" ? widenedProducts(kernel, by.architecture) : 0;
    const wanted = kernel.counts[name as keyof PtxCounts] + widened;
    if (found !== wanted)
      return `${kernel.name}: ${found} of ${name} in machine code, not ${wanted}`;
  }
  return undefined;
}
