/**
 * Foreign judges of the encoder: LLVM's assembler is given the text of each instruction, GNU's
 * disassembler the bytes. Bytes that differ from LLVM's must disassemble to the same text (encodings
 * are not unique), and every instruction must begin and end where we say.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encode } from "../../src/emit/x64/encode.ts";
import type { Instruction } from "../../src/emit/x64/operand.ts";
import { printInstruction } from "../../src/emit/x64/print.ts";

/** The judges that are not installed. */
export function missingJudges(): readonly string[] {
  return ["llvm-mc", "objdump"].filter((name) => {
    try {
      execFileSync(name, ["--version"], { stdio: "ignore" });
      return false;
    } catch {
      return true;
    }
  });
}

const hex = (bytes: readonly number[]): string =>
  bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ");

/** What the judges object to; empty when all is well. `encoder` may be a planted mutant. */
export function judgeInstructions(
  instructions: readonly Instruction[],
  encoder: (i: Instruction) => readonly number[] = (i) => encode(i).bytes,
): string[] {
  const texts = instructions.map((i) => printInstruction(i));
  const ours = instructions.map((i) => encoder(i));
  const theirs = assemble(texts);
  const ourText = disassemble(ours);
  const theirText = disassemble(theirs.map((t) => t ?? []));
  return instructions.flatMap((_, i) => {
    const what = `${texts[i]}: ours ${hex(ours[i]!)}`;
    if (theirs[i] === undefined) return [`${what}, which LLVM does not assemble`];
    if (ourText[i] === undefined) return [`${what}, of which objdump reads another length`];
    if (hex(ours[i]!) === hex(theirs[i])) return [];
    if (instructions[i]!.operands.some((o) => o.kind === "label")) {
      const [a, b] = [ourText[i], theirText[i]].map((t) => t?.split(" ")[0]);
      return a === b ? [] : [`${what} is ${a}, LLVM's ${b}`];
    }
    if (ourText[i] === theirText[i]) return [];
    return [`${what} is ${ourText[i]}; LLVM has ${hex(theirs[i])}, ${theirText[i]}`];
  });
}

/** LLVM's bytes of each line; undefined where it refuses. */
function assemble(texts: readonly string[]): (readonly number[] | undefined)[] {
  // A marker before each line tells which ones were refused.
  const source = texts.map((t, i) => `.globl mark${i}\n${t}`).join("\n");
  const output = run(
    "llvm-mc",
    [
      ...["-triple=x86_64", "-mcpu=sapphirerapids", "-x86-asm-syntax=intel"],
      ...["-output-asm-variant=1", "--show-encoding"],
      ...[
        "-mattr=+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni,+avx512bf16,+avx512fp16,+amx-tile,+amx-int8,+amx-bf16",
      ],
    ],
    `L0:\n${source}\n`,
  );
  const found: (readonly number[] | undefined)[] = texts.map(() => undefined);
  let at = -1;
  for (const line of output.split("\n")) {
    const mark = /\.globl\s+mark(\d+)/.exec(line);
    if (mark) at = Number(mark[1]);
    const encoding = /encoding: \[([^\]]*)\]/.exec(line);
    if (!encoding) continue;
    found[at] = encoding[1]!.split(",").map((b) => Number.parseInt(b.replace(/^A$/, "0"), 16) || 0);
  }
  return found;
}

/** GNU's text of each piece of code; undefined where it reads another length. */
function disassemble(pieces: readonly (readonly number[])[]): (string | undefined)[] {
  const folder = mkdtempSync(join(tmpdir(), "wavetile-judge-"));
  const file = join(folder, "code.bin");
  // Padding keeps a piece that is read too long from swallowing the next.
  const padding = new Array<number>(16).fill(0x90);
  writeFileSync(file, Uint8Array.from(pieces.flatMap((p) => [...p, ...padding])));
  const flags = [
    "-D",
    "-b",
    "binary",
    "-m",
    "i386:x86-64",
    "-M",
    "intel",
    "--no-show-raw-insn",
    "-w",
  ];
  const output = run("objdump", [...flags, file], "");
  rmSync(folder, { recursive: true });
  const lines = new Map<number, string>();
  for (const line of output.split("\n")) {
    const m = /^\s*([0-9a-f]+):\s+(.*?)\s*$/.exec(line);
    if (m)
      lines.set(
        Number.parseInt(m[1]!, 16),
        m[2]!.replace(/\s+/g, " ").replace(/# .*$/, "").replace(/,0x1$/, ",1"),
      );
  }
  let at = 0;
  return pieces.map((p) => {
    const begins = at;
    at += p.length + 16;
    if (p.length === 0) return undefined;
    const inside = [...Array(p.length - 1).keys()].some((i) => lines.has(begins + 1 + i));
    return inside || !lines.has(begins + p.length) ? undefined : lines.get(begins);
  });
}

function run(command: string, args: readonly string[], input: string): string {
  try {
    const stdio = ["pipe", "pipe", "pipe"] as const;
    return execFileSync(command, args, {
      input,
      encoding: "utf8",
      maxBuffer: 1 << 28,
      stdio: [...stdio],
    });
  } catch (error) {
    // llvm-mc fails when it refuses a line, and still prints the others.
    const { stdout } = error as { stdout?: string };
    if (stdout === undefined) throw error;
    return stdout;
  }
}
