import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createImage } from "../image/image.ts";
import { decodeCtc, readAlphabet } from "./ctc.ts";
import { detectionSize } from "./detect.ts";
import { editDistance, errorShare } from "./edit-distance.ts";
import { imagenetNormalisation, imageToPlanes, symmetricNormalisation } from "./planes.ts";
import { recognitionInput } from "./recognise.ts";

const alphabet = readAlphabet("a\nb\nc\n");

/** Rows that say the given classes with probability 0.9. */
function steps(classes: readonly number[]): Float32Array {
  const data = new Float32Array(classes.length * alphabet.length).fill(0.025);
  for (const [i, k] of classes.entries()) data[i * alphabet.length + k] = 0.9;
  return data;
}

describe("decodeCtc", () => {
  test("the alphabet has the blank first and the space last", () => {
    expect(alphabet).toEqual(["", "a", "b", "c", " "]);
    expect(readAlphabet("a\r\nb")).toEqual(["", "a", "b", " "]);
  });
  test("merges repeats, keeps repeats parted by a blank, drops blanks", () => {
    const decoded = decodeCtc(steps([0, 1, 1, 0, 1, 4, 2, 2, 3, 0]), alphabet);
    expect(decoded.text).toBe("aa bc");
    expect(decoded.score).toBeCloseTo(0.9, 5);
  });
  test("no text scores 0", () => {
    expect(decodeCtc(steps([0, 0]), alphabet)).toEqual({ text: "", score: 0 });
  });
  test("decodes what was written with a blank after each character", () => {
    const text = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 12 });
    fc.assert(
      fc.property(text, (classes) => {
        const data = steps(classes.flatMap((k) => [k, k, 0]));
        expect(decodeCtc(data, alphabet).text).toBe(classes.map((k) => alphabet[k]).join(""));
      }),
    );
  });
});

describe("planes", () => {
  test("are blue, green, red, normalised, and zero where padded", () => {
    const image = createImage(1, 1);
    image.data.set([255, 0, 51]);
    const planes = imageToPlanes(image, symmetricNormalisation, 2);
    expect(planes.dims).toEqual([1, 3, 1, 2]);
    const expected = [-0.6, 0, -1, 0, 1, 0];
    for (const [i, v] of expected.entries()) expect(planes.data[i]).toBeCloseTo(v, 6);
    const imagenet = imageToPlanes(image, imagenetNormalisation);
    expect(imagenet.data[0]).toBeCloseTo((0.2 - 0.485) / 0.229, 5);
    expect(imagenet.data[2]).toBeCloseTo((1 - 0.406) / 0.225, 5);
  });
});

describe("model inputs", () => {
  test("detection sizes are multiples of 32 with the longest side 800", () => {
    expect(detectionSize({ width: 384, height: 191 })).toEqual([800, 384]);
    expect(detectionSize({ width: 10, height: 3000 })).toEqual([32, 800]);
  });
  test("recognition keeps the ratio, so each line has its own width", () => {
    const widths = [
      [100, 20],
      [300, 20],
      [10, 20],
    ].map(([w, h]) => recognitionInput(createImage(w!, h!)).dims);
    expect(widths).toEqual([
      [1, 3, 48, 240],
      [1, 3, 48, 720],
      [1, 3, 48, 48],
    ]);
  });
});

describe("edit distance", () => {
  test("known cases", () => {
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(editDistance("", "abc")).toBe(3);
    expect(errorShare(["（a）"], ["(a)"])).toBe(0);
    expect(errorShare(["ab", "d"], ["ab", "cd"])).toBeCloseTo(1 / 5, 9);
  });
  test("is a metric", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 7 });
    fc.assert(
      fc.property(word, word, word, (a, b, c) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
        expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
      }),
    );
  });
});
