/**
 * Greedy CTC decoding (Graves et al., 2006): the best class of each step, repeats merged, blanks
 * dropped. Class 0 is the blank; the alphabet's characters follow; the last class is the space.
 */
import { invariant } from "../../src/support/invariant.ts";

/** Decoded text with the mean probability of the steps that gave a character (0 for no text). */
export interface Decoded {
  readonly text: string;
  readonly score: number;
}

/** Class to character; `keys` is the model's character file, one character a line. */
export function readAlphabet(keys: string): readonly string[] {
  return ["", ...keys.replace(/\r?\n$/, "").split(/\r?\n/), " "];
}

/** @param data probabilities, one row of `alphabet.length` classes a step */
export function decodeCtc(data: Float32Array, alphabet: readonly string[]): Decoded {
  const classes = alphabet.length;
  invariant(data.length % classes === 0, () => `${data.length} values for ${classes} classes`);
  let text = "";
  let total = 0;
  let kept = 0;
  let previous = 0;
  for (let row = 0; row < data.length; row += classes) {
    let best = 0;
    for (let k = 1; k < classes; k++) if (data[row + k]! > data[row + best]!) best = k;
    if (best !== 0 && best !== previous) {
      text += alphabet[best]!;
      total += data[row + best]!;
      kept++;
    }
    previous = best;
  }
  return { text, score: kept === 0 ? 0 : total / kept };
}
