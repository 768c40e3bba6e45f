/**
 * The header of a GGUF file (ggml documentation, "GGUF"): metadata and the list of tensors. The parsing
 * is @huggingface/gguf's, which is loaded when it is first asked for; this file feeds it bytes through
 * `readAt`, turns its errors into diagnostics and knows the size of each block type.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";

export interface GgufTensor {
  readonly name: string;
  /** Outermost first (GGUF stores the innermost first). */
  readonly shape: readonly number[];
  readonly type: string;
  readonly bitsPerElement: number;
  readonly integer: boolean;
}

export interface GgufHeader {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tensors: readonly GgufTensor[];
}

/** A file by ranges: what is past its end is left out. */
export interface ByteRanges {
  readonly bytes: number;
  readonly readAt: (offset: number, length: number) => Uint8Array;
}

type BlockType = readonly [name: string, bytes: number, elements: number, integer?: true];

/** ggml_type (ggml.h) with bytes and elements of a block (ggml-common.h). */
const blockTypes: ReadonlyMap<number, BlockType> = new Map<number, BlockType>([
  [0, ["F32", 4, 1]],
  [1, ["F16", 2, 1]],
  [2, ["Q4_0", 18, 32]],
  [3, ["Q4_1", 20, 32]],
  [6, ["Q5_0", 22, 32]],
  [7, ["Q5_1", 24, 32]],
  [8, ["Q8_0", 34, 32]],
  [9, ["Q8_1", 36, 32]],
  [10, ["Q2_K", 84, 256]],
  [11, ["Q3_K", 110, 256]],
  [12, ["Q4_K", 144, 256]],
  [13, ["Q5_K", 176, 256]],
  [14, ["Q6_K", 210, 256]],
  [15, ["Q8_K", 292, 256]],
  [16, ["IQ2_XXS", 66, 256]],
  [17, ["IQ2_XS", 74, 256]],
  [18, ["IQ3_XXS", 98, 256]],
  [19, ["IQ1_S", 50, 256]],
  [20, ["IQ4_NL", 18, 32]],
  [21, ["IQ3_S", 110, 256]],
  [22, ["IQ2_S", 82, 256]],
  [23, ["IQ4_XS", 136, 256]],
  [24, ["I8", 1, 1, true]],
  [25, ["I16", 2, 1, true]],
  [26, ["I32", 4, 1, true]],
  [27, ["I64", 8, 1, true]],
  [28, ["F64", 8, 1]],
  [29, ["IQ1_M", 56, 256]],
  [30, ["BF16", 2, 1]],
  [34, ["TQ1_0", 54, 256]],
  [35, ["TQ2_0", 66, 256]],
  [39, ["MXFP4", 17, 32]],
]);

export async function readGgufHeader(file: ByteRanges): Promise<Result<GgufHeader>> {
  const { gguf } = await import("@huggingface/gguf");
  let parsed: Awaited<ReturnType<typeof gguf>>;
  try {
    parsed = await gguf("https://file.invalid/model.gguf", { fetch: fetchFrom(file) });
  } catch (error) {
    // The package reports malformed files as plain Error and reads past the end as RangeError.
    if (!(error instanceof Error)) throw error;
    return notGguf(error.message);
  }
  // The package reads zeros behind the file's end: a cut header shows only in where it would end.
  const [, headerEnd] = parsed.tensorInfoByteRange;
  if (headerEnd > file.bytes) return notGguf(cutOff(file, "its header", headerEnd));
  const tensors: GgufTensor[] = [];
  for (const { name, shape, dtype, offset } of parsed.tensorInfos) {
    const type = blockTypes.get(dtype);
    if (!type) return notGguf(`tensor ${JSON.stringify(name)} has the unknown type ${dtype}`);
    const [typeName, bytes, elements, integer = false] = type;
    const blocks = Math.ceil(shape.reduce((n, extent) => n * Number(extent), 1) / elements);
    const end = Number(parsed.tensorDataOffset + offset) + blocks * bytes;
    if (end > file.bytes) return notGguf(cutOff(file, `tensor ${JSON.stringify(name)}`, end));
    tensors.push({
      name,
      shape: shape.map(Number).reverse(),
      type: typeName,
      bitsPerElement: (bytes * 8) / elements,
      integer,
    });
  }
  return ok({ metadata: Object.fromEntries(Object.entries(parsed.metadata)), tensors });
}

function cutOff(file: ByteRanges, what: string, end: number): string {
  return `${what} would end at byte ${end}, the file has ${file.bytes}`;
}

/** Answers the package's range requests from the file. */
function fetchFrom(file: ByteRanges): typeof fetch {
  return async (_, init) => {
    const range = new Headers(init?.headers).get("range") ?? "";
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
    const [first, last] = [Number(from), Math.min(Number(to), file.bytes - 1)];
    if (!(first <= last)) throw new RangeError("the header is longer than the file");
    const body = new Uint8Array(file.readAt(first, last - first + 1));
    const headers = { "content-range": `bytes ${first}-${last}/${file.bytes}` };
    return new Response(body, { status: 206, headers });
  };
}

function notGguf(why: string): Result<never> {
  return fail(
    diagnostic("GUF001", `not a readable GGUF file: ${why}`, {
      help: "the file is damaged or of another kind; write or download it again",
    }),
  );
}
