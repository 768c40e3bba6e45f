/**
 * Machine code of kernels through NVIDIA's disassembler. Starting it takes a third of a second and an
 * instruction microseconds, so that what is asked for while others wait is disassembled together.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { said } from "./run-judge.ts";

/** At most so many at a time. */
export function limited(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((go) => void waiting.push(go));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}

const textPrefix = ".text.";

/**
 * Code of each entry of a cubin, which is an ELF file of 64 bits (System V ABI, chapter 4: the header, sections).
 *
 * @throws RangeError where the file is cut short
 */
export function codeOf(cubin: Uint8Array): ReadonlyMap<string, Uint8Array> {
  const view = new DataView(cubin.buffer, cubin.byteOffset, cubin.byteLength);
  const long = (at: number): number => Number(view.getBigUint64(at, true));
  const headers = long(0x28);
  const [size, count, names] = [0x3a, 0x3c, 0x3e].map((at) => view.getUint16(at, true)) as [
    number,
    number,
    number,
  ];
  const startOf = (section: number): number => long(headers + section * size + 0x18);
  const text = new TextDecoder();
  const found = new Map<string, Uint8Array>();
  for (let section = 0; section < count; section++) {
    const named = startOf(names) + view.getUint32(headers + section * size, true);
    const name = text.decode(cubin.subarray(named, cubin.indexOf(0, named)));
    if (!name.startsWith(textPrefix)) continue;
    const [from, bytes] = [startOf(section), long(headers + section * size + 0x20)];
    if (from + bytes > cubin.length) throw new RangeError(`${name} ends behind the file`);
    found.set(name.slice(textPrefix.length), cubin.subarray(from, from + bytes));
  }
  return found;
}

interface Request {
  readonly code: Uint8Array;
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
}

/** Requests of one architecture that are waited for, and milliseconds that the first of them waits. */
const [mostTogether, patience] = [256, 3000] as const;

export class Disassembler {
  readonly #path: string;
  readonly #limit: ReturnType<typeof limited>;
  readonly #waiting = new Map<string, Request[]>();

  constructor(path: string, limit: ReturnType<typeof limited>) {
    this.#path = path;
    this.#limit = limit;
  }

  /** Instructions, a line each; `target` as ptxas names it. */
  instructions(target: string, code: Uint8Array): Promise<string> {
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(target) ?? [];
      this.#waiting.set(target, [...others, { code, resolve, reject }]);
      if (others.length === 0) setTimeout(() => this.#flush(target), patience);
      else if (others.length + 1 >= mostTogether) this.#flush(target);
    });
  }

  #flush(target: string): void {
    const requests = this.#waiting.get(target) ?? [];
    if (requests.length === 0) return;
    this.#waiting.delete(target);
    this.#limit(() => this.#disassemble(target, requests)).catch((error: unknown) => {
      for (const { reject } of requests) reject(error as Error);
    });
  }

  async #disassemble(target: string, requests: readonly Request[]): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), "wavetile-code-"));
    try {
      const file = join(folder, "code");
      await writeFile(file, Buffer.concat(requests.map((r) => r.code)));
      const made = await said(this.#path, ["--binary", target.replace("sm_", "SM"), file]);
      if (!made.ok) throw new Error(`nvdisasm: ${made.stderr.slice(0, 200)}`);
      const texts = textsOf(
        made.stdout,
        requests.map((r) => r.code.length),
      );
      for (const [i, { resolve }] of requests.entries()) resolve(texts[i]!);
    } finally {
      await rm(folder, { recursive: true });
    }
  }
}

/** The lines of each piece of code, from the addresses before them. */
export function textsOf(listing: string, sizes: readonly number[]): readonly string[] {
  const texts = sizes.map((): string[] => []);
  let [piece, end] = [0, sizes[0] ?? 0];
  for (const line of listing.split("\n")) {
    const address = /^\s*\/\*([0-9a-f]{4,})\*\/\s/.exec(line)?.[1];
    if (address === undefined) continue;
    while (Number.parseInt(address, 16) >= end) {
      piece++;
      end += sizes[piece] ?? Number.POSITIVE_INFINITY;
    }
    texts[piece]?.push(line);
  }
  return texts.map((lines) => lines.join("\n"));
}
