/**
 * A kernel's text read back as what instructions do to virtual registers: what each reads and writes, and where
 * it may go on. In: the text of an entry as this emitter prints it. Out: instructions in blocks without
 * branches. What is worked out on it (registers, chains of loads) is told to people and never decides a program.
 */

export interface PtxInstruction {
  /** With its modifiers, as `ld.global.nc.v4.b32`. */
  readonly opcode: string;
  /** Virtual registers by number (`PtxFlow.registers`). */
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** What it writes may stay as it was: the instruction is predicated, or adds to what is there. */
  readonly keeps: boolean;
  /** As they stand in the text, without the result. */
  readonly operands: string;
}

export interface PtxBlock {
  readonly instructions: readonly PtxInstruction[];
  /** Blocks that may come next, by number. */
  readonly next: readonly number[];
  /** The text says that the loop which begins here is not copied out. */
  readonly isRolled: boolean;
}

export interface PtxFlow {
  /** Names of the virtual registers, as `%r12`. */
  readonly registers: readonly string[];
  readonly blocks: readonly PtxBlock[];
}

/** Opcodes whose first operand is not a result, although it is no address. */
const withoutResult =
  /^(bra|ret|bar|barrier|setmaxnreg|griddepcontrol|fence|cp\.async\.(bulk\.)?(wait|commit)|wgmma\.(fence|commit|wait)|nanosleep|pmevent)/;
/** Sums that stay in the registers that are named first. */
const addsInPlace = /^wgmma\.mma_async/;

interface OpenBlock {
  readonly labels: string[];
  readonly instructions: PtxInstruction[];
  /** Labels that a branch at its end names, and whether the next block may follow. */
  readonly targets: string[];
  fallsThrough: boolean;
  isRolled: boolean;
}

/** Reads the body of an entry. */
export function readFlow(text: string): PtxFlow {
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    const known = numbers.get(name) ?? numbers.size;
    numbers.set(name, known);
    return known;
  };
  const blocks: OpenBlock[] = [openBlock()];
  for (const piece of piecesOf(text)) {
    if (piece.endsWith(":")) {
      if (blocks.at(-1)!.instructions.length > 0) blocks.push(openBlock());
      blocks.at(-1)!.labels.push(piece.slice(0, -1));
      continue;
    }
    const block = blocks.at(-1)!;
    if (piece.startsWith(".pragma")) {
      block.isRolled ||= piece.includes("nounroll");
      continue;
    }
    const { predicate, opcode, operands } = partsOf(piece);
    block.instructions.push(instructionOf({ predicate, opcode, operands }, numberOf));
    if (opcode !== "ret" && !opcode.startsWith("bra")) continue;
    if (opcode !== "ret") block.targets.push(operands.trim());
    block.fallsThrough = predicate !== undefined;
    blocks.push(openBlock());
  }
  const places = new Map(blocks.flatMap((b, i) => b.labels.map((label) => [label, i] as const)));
  return {
    registers: [...numbers.keys()],
    blocks: blocks.map(({ instructions, targets, fallsThrough, isRolled }, i) => {
      const named = targets.map((t) => places.get(t)!);
      const after = fallsThrough && i + 1 < blocks.length ? [i + 1] : [];
      return { instructions, next: [...named, ...after], isRolled };
    }),
  };
}

function openBlock(): OpenBlock {
  return { labels: [], instructions: [], targets: [], fallsThrough: true, isRolled: false };
}

/** Instructions and labels in the order of the text, without declarations. */
function piecesOf(text: string): readonly string[] {
  const begin = text.indexOf("\n{");
  return text
    .slice(begin + 2)
    .replace(/\/\/[^\n]*/g, "")
    .split(/;|(?<=:)\n/)
    .flatMap((piece) => {
      const plain = piece
        .trim()
        .replace(/^[{}]\s+(?=[^,]*$|[a-z@.])/, "")
        .trim();
      const isDeclaration = plain.startsWith(".") && !plain.startsWith(".pragma");
      return plain === "" || plain === "{" || plain === "}" || isDeclaration ? [] : [plain];
    });
}

interface Parts {
  readonly predicate: string | undefined;
  readonly opcode: string;
  readonly operands: string;
}

function partsOf(piece: string): Parts {
  const [, predicate, opcode = "", operands = ""] =
    /^(?:@!?(%\w+)\s+)?([\w.:]+)\s*([\s\S]*)$/.exec(piece) ?? [];
  return { predicate, opcode, operands };
}

function instructionOf(
  { predicate, opcode, operands }: Parts,
  numberOf: (name: string) => number,
): PtxInstruction {
  const [first, rest] = splitFirst(operands);
  const isWritten = !withoutResult.test(opcode) && !first.startsWith("[");
  const registersIn = (part: string): number[] =>
    (part.match(/%(?:p|h|r|d)\d+/g) ?? []).map(numberOf);
  const writes = isWritten ? registersIn(first) : [];
  const inPlace = addsInPlace.test(opcode);
  const reads = [
    ...registersIn(isWritten ? rest : operands),
    ...(inPlace || predicate !== undefined ? writes : []),
    ...(predicate === undefined ? [] : [numberOf(predicate)]),
  ];
  const keeps = inPlace || predicate !== undefined;
  return { opcode, reads, writes, keeps, operands: isWritten ? rest : operands };
}

/** The first operand, a list in braces as a whole, and the others. */
function splitFirst(operands: string): readonly [string, string] {
  let depth = 0;
  for (const [i, c] of [...operands].entries()) {
    if (c === "{" || c === "[") depth++;
    if (c === "}" || c === "]") depth--;
    if (c === "," && depth === 0) return [operands.slice(0, i), operands.slice(i + 1)];
  }
  return [operands, ""];
}
