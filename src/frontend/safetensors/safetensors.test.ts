import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSafetensors, type Safetensor, writeSafetensors } from "./safetensors.ts";

const sample = new Map<string, Safetensor>([
  ["b", { type: "F32", shape: [2], bytes: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }],
  ["a", { type: "U8", shape: [3], bytes: Uint8Array.of(9, 8, 7) }],
  ["empty", { type: "I64", shape: [0, 4], bytes: new Uint8Array(0) }],
]);

function file(header: string, ...data: number[]): Uint8Array {
  const text = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

describe("safetensors", () => {
  it("reads back what it writes, in the order of names, aligned", () => {
    const written = writeSafetensors(sample);
    const read = readSafetensors(written);
    if (!read.ok) throw new Error(read.diagnostics[0]!.message);
    expect([...read.value.keys()].sort()).toEqual(["a", "b", "empty"]);
    for (const [name, tensor] of sample) {
      expect(read.value.get(name)).toEqual(tensor);
      expect(read.value.get(name)!.bytes.byteOffset % 64).toBe(0);
    }
    expect(writeSafetensors(new Map([...sample].reverse()))).toEqual(written);
  });

  it.each([
    [
      "overlap",
      '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
      3,
    ],
    ["hole", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', 2],
    ["out of range", '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 3],
    ["bytes of no tensor", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 2],
    ["size", '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1]}}', 1],
    ["type", '{"a":{"dtype":"Q8","shape":[1],"data_offsets":[0,1]}}', 1],
    ["unknown key", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}', 1],
    ["negative extent", '{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}', 1],
    ["no object", "[]", 0],
    ["no JSON", "{", 0],
  ])("refuses %s with ART001", (_, header, count) => {
    const result = readSafetensors(file(header, ...new Array<number>(count).fill(0)));
    expect(result).toMatchObject({ ok: false, diagnostics: [{ code: "ART001" }] });
  });

  it("says of a file that was cut how much of it there is", () => {
    const written = writeSafetensors(sample);
    const cut = readSafetensors(written.subarray(0, written.length - 3));
    expect(cut.ok ? "" : cut.diagnostics[0]!.message).toMatch(
      /cut short: (\d+) bytes of data are announced, (\d+) are there/,
    );
  });

  it("survives any damage", () => {
    const written = writeSafetensors(sample);
    fc.assert(
      fc.property(
        fc.nat(written.length),
        fc.nat(written.length - 1),
        fc.nat(255),
        (end, at, byte) => {
          const damaged = written.slice(0, end);
          if (at < end) damaged[at] = byte;
          const result = readSafetensors(damaged);
          if (!result.ok) expect(result.diagnostics[0]!.code).toBe("ART001");
        },
      ),
      { numRuns: 300 },
    );
  });
});
