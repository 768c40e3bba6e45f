import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteWriter } from "./byte-writer.ts";

/** LEB128 by its definition: seven bits a byte, lowest first, sign taken from the last byte. */
function decode(bytes: Uint8Array, signed: boolean): bigint {
  let value = 0n;
  let shift = 0n;
  for (const byte of bytes) {
    value |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
  }
  return signed ? BigInt.asIntN(Number(shift), value) : value;
}

function written(write: (w: ByteWriter) => void): Uint8Array {
  const w = new ByteWriter(1);
  write(w);
  return w.finish();
}

/** Every byte but the last has its continuation bit, and no shorter encoding exists. */
function checkMinimal(bytes: Uint8Array, bits: number): void {
  expect(bytes.slice(0, -1).every((b) => b >= 0x80)).toBe(true);
  expect(bytes.at(-1)!).toBeLessThan(0x80);
  expect(bytes.length).toBe(Math.max(1, Math.ceil(bits / 7)));
}

describe("ByteWriter", () => {
  it("writes unsigned LEB128 that decodes to the value and is minimal", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), (value) => {
        const bytes = written((w) => w.u32(value));
        expect(decode(bytes, false)).toBe(BigInt(value));
        checkMinimal(bytes, value.toString(2).length);
      }),
    );
  });

  it("writes signed LEB128 of 32 bits", () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (value) => {
        const bytes = written((w) => w.s32(value));
        expect(decode(bytes, true)).toBe(BigInt(value));
        checkMinimal(bytes, (value < 0 ? -value - 1 : value).toString(2).length + 1);
      }),
    );
    expect(written((w) => w.s32(0xffffffff))).toEqual(written((w) => w.s32(-1)));
  });

  it("writes signed LEB128 of 64 bits", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(
          decode(
            written((w) => w.s64(value)),
            true,
          ),
        ).toBe(value);
      }),
    );
    for (const v of [63n, 64n, -64n, -65n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      expect(
        decode(
          written((w) => w.s64(v)),
          true,
        ),
      ).toBe(v);
    }
  });

  it("refuses what is no u32", () => {
    expect(() => written((w) => w.u32(-1))).toThrow("u32 -1");
    expect(() => written((w) => w.u32(2 ** 32))).toThrow("u32 4294967296");
  });

  it("writes names as UTF-8 with their byte count", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const utf8 = new TextEncoder().encode(text);
        expect(written((w) => w.name(text)).slice(-utf8.length || Infinity)).toEqual(utf8);
      }),
    );
    expect([...written((w) => w.name("é€😀"))]).toEqual([9, ...new TextEncoder().encode("é€😀")]);
  });

  it("writes floats little-endian and grows", () => {
    const bytes = written((w) => {
      for (let i = 0; i < 100; i++) w.f64(i);
      w.f32(1.5);
    });
    const view = new DataView(bytes.buffer);
    expect([view.getFloat64(8 * 99, true), view.getFloat32(800, true)]).toEqual([99, 1.5]);
  });
});
