/** The PTX for Hopper of a program that is written as text. */
import { parseProgram } from "../../program/program-parse.ts";
import { architectures } from "../../target/architectures/index.ts";
import { emitPtx } from "./emit-program.ts";

export function emittedText(program: string): string {
  const read = parseProgram(program);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  const made = emitPtx(read.value, architectures.get("sm_90a")!);
  if (!made.ok) throw new Error(made.diagnostics.map((d) => d.message).join("\n"));
  return made.value.text;
}
