import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomTensor, type Tensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { readNpy, writeNpy } from "./npy.ts";

function file(header: string, ...data: number[]): Uint8Array {
  const text = new TextEncoder().encode(header);
  return Uint8Array.from([
    0x93,
    ...new TextEncoder().encode("NUMPY"),
    1,
    0,
    text.length,
    0,
    ...text,
    ...data,
  ]);
}

describe("npy", () => {
  const kinds = ["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"];

  it("reads back what it writes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
        fc.integer(),
        (dtype, shape, seed) => {
          const tensor = randomTensor(dtype as Tensor["dtype"], shape, new Rng(seed));
          const written = writeNpy(tensor);
          if (!written.ok) throw new Error(dtype);
          expect((written.value.length - tensor.data.byteLength) % 64).toBe(0);
          expect(readNpy(written.value)).toMatchObject({ ok: true, value: tensor });
        },
      ),
    );
  });

  it("reads Fortran order, keys in any order, and any mark of byte order on single bytes", () => {
    const header = "{'shape': (2, 3), 'fortran_order': True, 'descr': '<u1'}\n";
    expect(readNpy(file(header, 1, 4, 2, 5, 3, 6))).toMatchObject({
      value: { dtype: "u8", shape: [2, 3], data: Uint8Array.of(1, 2, 3, 4, 5, 6) },
    });
  });

  it("refuses damaged files (RUN033) and foreign types (RUN034), and never throws", () => {
    const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
    const code = (bytes: Uint8Array): string => {
      const result = readNpy(bytes);
      return result.ok ? "ok" : result.diagnostics[0]!.code;
    };
    expect(code(file(header, 1, 2))).toBe("ok");
    expect(code(file(header, 1))).toBe("RUN033");
    expect(code(file(header, 1, 2, 3))).toBe("RUN033");
    const bools = header.replace("|u1", "|b1");
    expect(code(file(bools, 1, 0))).toBe("ok");
    for (const data of [
      [2, 0],
      [1, 255],
    ])
      expect(code(file(bools, ...data))).toBe("RUN033");
    expect(code(file(header.replace("|u1", ">f4"), 1, 2))).toBe("RUN034");
    expect(code(file(header.replace("|u1", "|O"), 1, 2))).toBe("RUN034");
    expect(code(file(header.replace("|u1", "|b1"), 1, 2))).toBe("RUN033");
    expect(code(file(header.replace("(2,)", "(-2,)"), 1, 2))).toBe("RUN033");
    expect(writeNpy({ dtype: "bf16", shape: [1], data: new Uint16Array(1) })).toMatchObject({
      diagnostics: [{ code: "RUN034" }],
    });
    const whole = file(header, 1, 2);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, end) => {
        const damaged = whole.slice(0, end);
        if (at < end) damaged[at] = byte;
        expect(["ok", "RUN033", "RUN034"]).toContain(code(damaged));
      }),
    );
  });
});
