/** The lines of the instruction tables as values, found by name. */
import { invariant } from "../../../support/invariant.ts";
import { generalRowText } from "./general-rows.ts";
import { unexecutedRowText } from "./unexecuted-rows.ts";
import { vectorRowText } from "./vector-rows.ts";

type OpcodeMap = 0 | 1 | 2 | 3 | 5 | 6;

export interface InstructionRow {
  readonly name: string;
  /** As the manual spells it. */
  readonly mnemonic: string;
  readonly encoding: "legacy" | "vex" | "evex";
  /** What stands in each operand: R, V, M, I, S, O, D (rows/vector-rows.ts). */
  readonly slots: string;
  /** Alternatives of each operand. */
  readonly types: readonly (readonly string[])[];
  readonly prefix: number;
  readonly lock: boolean;
  readonly map: OpcodeMap;
  /** undefined: the operand size decides (W*). */
  readonly w: 0 | 1 | undefined;
  readonly opcode: number;
  /** Follows the opcode where neither register nor memory does. */
  readonly secondByte: number | undefined;
  readonly digit: number | undefined;
  /** Bytes of the memory operand: of the vector, of the general register, or fixed. */
  readonly memory: "full" | "half" | "quarter" | "eighth" | "size" | number | undefined;
  /** Bytes of an element where memory may be broadcast. */
  readonly broadcastBytes: number;
  /** Vector lengths in bits; empty: none, `fixedLength` is put into VEX.L. */
  readonly lengths: readonly number[];
  readonly fixedLength: 0 | 1;
  /** What happens to the first operand. */
  readonly access: "write" | "readWrite" | "read";
  /** A machine has run it; code with others is refused. */
  readonly isExecuted: boolean;
}

const prefixes: Readonly<Record<string, number>> = { NP: 0, "66": 0x66, F3: 0xf3, F2: 0xf2, F0: 0 };
const maps: Readonly<Record<string, OpcodeMap>> = {
  ...{ "00": 0, "0F": 1, "38": 2, "3A": 3 },
  ...{ M5: 5, M6: 6 },
};

function parseLine(line: string, isExecuted: boolean): InstructionRow[] {
  const [named, slots, types, encoding, code, opcode, memory, ...options] = line.split(" ");
  const [name, mnemonic] = named!.split("=");
  const [prefix, map, w] = code!.split(".");
  const [bytes, digit] = opcode!.split("/");
  const [byte, second] = bytes!.split("+");
  const part = /^(full|half|quarter|eighth|size|\d+|-)(\d*)$/.exec(memory!);
  invariant(part && slots && types && w !== undefined, () => `instruction row ${line}`);
  const lengths = options.find((o) => o.startsWith(":"));
  const vectorial =
    !options.some((o) => o === "scalar" || /^L\d$/.test(o)) && encoding !== "legacy";
  const size = part[1]!;
  const base = {
    name: name!,
    mnemonic: (mnemonic ?? name!).replace("_", " "),
    slots: slots === "-" ? "" : slots,
    types: types === "-" ? [] : types.split(",").map((t) => t.split("/")),
    prefix: prefixes[prefix!]!,
    lock: prefix === "F0",
    map: maps[map!]!,
    opcode: Number.parseInt(byte!, 16),
    secondByte: second === undefined ? undefined : Number.parseInt(second, 16),
    digit: digit === undefined ? undefined : Number(digit),
    memory: (size === "-"
      ? undefined
      : /^\d+$/.test(size)
        ? Number(size)
        : size) as InstructionRow["memory"],
    broadcastBytes: Number(part[2] ?? 0),
    fixedLength: options.includes("L1") ? 1 : 0,
    access: options.includes("rw") ? "readWrite" : options.includes("r") ? "read" : "write",
    isExecuted,
  } as const;
  const wide = lengths?.slice(1).split(",").map(Number) ?? [128, 256, 512];
  const row = (kind: InstructionRow["encoding"], allowed: readonly number[]): InstructionRow => ({
    ...base,
    encoding: kind,
    w: w === "W*" ? undefined : w === "W1" || (w === "WIG1" && kind === "evex") ? 1 : 0,
    broadcastBytes: kind === "evex" ? base.broadcastBytes : 0,
    lengths: vectorial ? allowed : [],
  });
  const short = wide.filter((l) => l < 512);
  if (encoding === "legacy") return [row("legacy", [])];
  if (encoding === "vex") return [row("vex", short)];
  if (encoding === "evex") return [row("evex", wide)];
  return [...(short.length > 0 || !vectorial ? [row("vex", short)] : []), row("evex", wide)];
}

/** Every form, in table order. */
export const instructionRows: readonly InstructionRow[] = [
  ...parseRows(`${vectorRowText}\n${generalRowText}`, true),
  ...parseRows(unexecutedRowText, false),
];

function parseRows(text: string, isExecuted: boolean): readonly InstructionRow[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.flatMap((line) => parseLine(line, isExecuted));
}

const byName = new Map<string, InstructionRow[]>();
for (const row of instructionRows) {
  const same = byName.get(row.name);
  if (same) same.push(row);
  else byName.set(row.name, [row]);
}

/** The forms of an instruction, the shortest encoding first. */
export function rowsOf(name: string): readonly InstructionRow[] {
  const rows = byName.get(name);
  invariant(rows, () => `no instruction ${name}`);
  return rows;
}

/** Whether the first operand of an instruction is written, read, or both: the same for all its forms. */
export function accessOf(name: string): InstructionRow["access"] {
  return rowsOf(name)[0]!.access;
}
