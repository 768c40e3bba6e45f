import { expect, test } from "vitest";
import { attempt } from "../src/support/diagnostic.ts";
import { readWave } from "./real-sounds.ts";

/** A RIFF file with a chunk between the format and the samples. */
function wave(samples: readonly number[], rate = 16_000): Uint8Array {
  const view = new DataView(new ArrayBuffer(54 + 2 * samples.length));
  const put = (at: number, text: string): void => {
    for (let i = 0; i < text.length; i++) view.setUint8(at + i, text.charCodeAt(i));
  };
  put(0, "RIFF");
  put(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [34, 16],
  ] as const)
    view.setUint16(at, value, true);
  view.setUint32(24, rate, true);
  put(36, "LIST");
  view.setUint32(40, 1, true); // and a byte that makes it even
  put(46, "data");
  view.setUint32(50, 2 * samples.length, true);
  for (const [i, s] of samples.entries()) view.setInt16(54 + 2 * i, s, true);
  return new Uint8Array(view.buffer);
}

test("samples are read as fractions, other files refused", () => {
  expect([...readWave(wave([0, 16384, -32768]))]).toEqual([0, 0.5, -1]);
  for (const bytes of [wave([1], 8_000), wave([1]).subarray(0, 40), new Uint8Array(4)]) {
    const read = attempt(() => readWave(bytes));
    expect(read).toMatchObject({ ok: false, diagnostics: [{ code: "FET004" }] });
  }
});
