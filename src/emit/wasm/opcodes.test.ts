import binaryen from "binaryen";
import { describe, expect, it } from "vitest";
import { moduleOfRows, opcodeRows } from "./opcode-check.ts";

const isRelaxed = (opcode: number) => opcode >= 0xfd100 && opcode < 0xfe000;
const rows = opcodeRows();

/** The text form that Binaryen reads from a module, split by function name. */
function binaryenFunctions(bytes: Uint8Array): Map<string, string> {
  const module = binaryen.readBinary(bytes);
  module.setFeatures(binaryen.Features.All);
  const functions = new Map<string, string>();
  for (const part of module.emitText().split(/\n (?=\(func )/)) {
    const name = /^\(func \$"?([^\s"]+)"?/.exec(part)?.[1];
    if (name !== undefined) functions.set(name, part);
  }
  expect(module.validate()).toBe(1);
  module.dispose();
  return functions;
}

describe("opcode table", () => {
  it("has no opcode twice", () => {
    expect(new Set(rows.map((r) => r.opcode)).size).toBe(rows.length);
  });

  it.each(rows.filter((r) => !isRelaxed(r.opcode)))("$name is valid with its signature", (row) => {
    expect(WebAssembly.validate(moduleOfRows([row]))).toBe(true);
  });

  it("means to Binaryen what the row says, for every row", () => {
    const functions = binaryenFunctions(moduleOfRows(rows));
    const misread = rows.filter((row) => {
      const text = functions.get(row.name) ?? "";
      return !new RegExp(`\\(${row.name.replaceAll(".", "\\.")}[\\s)]`).test(text);
    });
    expect(misread.map((row) => [row.name, functions.get(row.name)])).toEqual([]);
  });
});
