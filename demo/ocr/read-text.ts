/**
 * The OCR pipeline, as a table of contents: detect boxes, straighten each, turn it upright,
 * recognise it, and put the pieces in reading order.
 */
import type { Session } from "../../bench/sessions/session.ts";
import type { Quad } from "../image/geometry.ts";
import { type Image, rotateHalfTurn, rotateQuarterTurn } from "../image/image.ts";
import { cropQuad } from "../image/warp.ts";
import { isUpsideDown } from "./angle.ts";
import { detectText } from "./detect.ts";
import { type Direction, readingOrder } from "./reading-order.ts";
import { recogniseLine, recognitionWidth } from "./recognise.ts";

/** The three models and the alphabet of the recogniser. */
export interface OcrModels {
  readonly detect: Session;
  readonly angle: Session;
  readonly recognise: Session;
  readonly alphabet: readonly string[];
}

/** One recognised piece of text. */
export interface Piece {
  readonly text: string;
  readonly score: number;
  readonly quad: Quad;
  /** Which way its text runs in the picture. */
  readonly direction: Direction;
  /** Columns that the recogniser was given. */
  readonly width: number;
}

/** Pieces recognised with less certainty are dropped. */
const leastScore = 0.5;
/** Below it a piece is also read the other way up. */
const doubtfulScore = 0.8;
/** Crops at least this much higher than wide hold text that runs downwards. */
const uprightRatio = 1.5;

/** The lines of text in the picture, top to bottom, each a list of pieces left to right. */
export async function readText(models: OcrModels, image: Image): Promise<Piece[][]> {
  const pieces: Piece[] = [];
  for (const { quad } of await detectText(models.detect, image)) {
    const piece = await readPiece(models, image, quad);
    if (piece.score >= leastScore) pieces.push(piece);
  }
  return readingOrder(pieces);
}

/** Text of each line, pieces joined by spaces. */
export function linesOf(pieces: readonly (readonly Piece[])[]): string[] {
  return pieces.map((line) => line.map((piece) => piece.text).join(" "));
}

async function readPiece(models: OcrModels, image: Image, quad: Quad): Promise<Piece> {
  const crop = cropQuad(image, quad);
  const along = crop.height >= uprightRatio * crop.width ? rotateQuarterTurn(crop) : crop;
  const turned = await isUpsideDown(models.angle, along);
  const first = await readTurned(models, along, turned);
  // The classifier sees long lines squeezed and errs on some; text read on its head scores low.
  const second = first.score < doubtfulScore ? await readTurned(models, along, !turned) : first;
  const best = second.score > first.score ? second : first;
  const direction = directionOf(along !== crop, best.turned);
  return { text: best.text, score: best.score, direction, quad, width: recognitionWidth(along) };
}

async function readTurned(models: OcrModels, crop: Image, turned: boolean) {
  const upright = turned ? rotateHalfTurn(crop) : crop;
  const decoded = await recogniseLine(models.recognise, upright, models.alphabet);
  return { ...decoded, turned };
}

function directionOf(vertical: boolean, turned: boolean): Direction {
  if (vertical) return turned ? "up" : "down";
  return turned ? "left" : "right";
}
