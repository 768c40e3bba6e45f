/**
 * Text recognition: one upright crop in, its text out. The crop is resized to 48 rows with its
 * ratio kept, so every line has its own width and the model's width dimension is symbolic.
 */
import { type Session, type Tensor, takeFloat32 } from "../../bench/sessions/session.ts";
import type { Image } from "../image/image.ts";
import { resizeBilinear } from "../image/resize.ts";
import { type Decoded, decodeCtc } from "./ctc.ts";
import { imageToPlanes, symmetricNormalisation } from "./planes.ts";

const inputHeight = 48;
/** The model shrinks the width by 8; narrower crops are padded to a few steps. */
const leastWidth = 48;
/** Wider lines are squeezed; the model table declares the same range of widths. */
const mostWidth = 2048;

export async function recogniseLine(
  session: Session,
  crop: Image,
  alphabet: readonly string[],
): Promise<Decoded> {
  const outputs = await session.run({ [session.inputs[0]!.name]: recognitionInput(crop) });
  return decodeCtc(takeFloat32(outputs, session.outputs[0]!.name).data, alphabet);
}

/** Columns that the recogniser is given for a crop. */
export function recognitionWidth(crop: Image): number {
  return Math.max(leastWidth, unpaddedWidth(crop));
}

/** The tensor [1, 3, 48, W] of a crop. */
export function recognitionInput(crop: Image): Tensor {
  const width = recognitionWidth(crop);
  const line = resizeBilinear(crop, unpaddedWidth(crop), inputHeight);
  return imageToPlanes(line, symmetricNormalisation, width);
}

function unpaddedWidth(crop: Image): number {
  return Math.min(mostWidth, Math.ceil((inputHeight * crop.width) / crop.height));
}
