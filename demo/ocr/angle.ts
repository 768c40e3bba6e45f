/**
 * Angle classifier: says whether a cropped line stands on its head. Input 48 x 192, ratio kept up to
 * that width, the rest padded; output the probabilities of 0° and 180°.
 */
import { type Session, takeFloat32 } from "../../bench/sessions/session.ts";
import type { Image } from "../image/image.ts";
import { resizeBilinear } from "../image/resize.ts";
import { imageToPlanes, symmetricNormalisation } from "./planes.ts";

const inputHeight = 48;
const inputWidth = 192;
/** Only a classifier this certain turns a line. */
const turnThreshold = 0.9;

/** Whether the classifier takes the line for upside down. */
export async function isUpsideDown(session: Session, crop: Image): Promise<boolean> {
  const width = Math.min(inputWidth, Math.ceil((inputHeight * crop.width) / crop.height));
  const small = resizeBilinear(crop, width, inputHeight);
  const input = imageToPlanes(small, symmetricNormalisation, inputWidth);
  const outputs = await session.run({ [session.inputs[0]!.name]: input });
  return takeFloat32(outputs, session.outputs[0]!.name).data[1]! > turnThreshold;
}
