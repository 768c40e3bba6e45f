/**
 * The OCR part of the demo: reads every picture with the runtime under show, and compares the
 * text with what a person reads. Agreement of the models' outputs is kept by agreement.ts.
 */
import { readFileSync } from "node:fs";
import type { ModelRow } from "../bench/models/table.ts";
import { decodeImage } from "./image/decode.ts";
import { shrinkTo } from "./image/shrink.ts";
import type { Page } from "./images/pages.ts";
import { errorShare } from "./ocr/edit-distance.ts";
import { linesOf, type OcrModels, type Piece, readText } from "./ocr/read-text.ts";

/** Longest side that a scan is worked on at; larger ones are averaged down. */
const scanSide = 1400;

export interface PageReading {
  readonly page: Page;
  readonly lines: readonly string[];
  /** Columns of the narrowest and the widest piece that the recogniser was given. */
  readonly widths: readonly [number, number];
  readonly errorShare: number;
  readonly ms: number;
}

export const ocrModelNames = {
  detect: "ppocr-v4-det",
  angle: "ppocr-v2-cls",
  recognise: "ppocr-v4-rec",
} as const satisfies Record<string, ModelRow["name"]>;

/** Reads one page of demo/images. */
export async function readPage(models: OcrModels, page: Page): Promise<PageReading> {
  const bytes = readFileSync(new URL(`images/${page.file}`, import.meta.url));
  const start = performance.now();
  const image = shrinkTo(decodeImage(bytes), scanSide);
  const pieces = await readText(models, image);
  const ms = performance.now() - start;
  const lines = linesOf(pieces);
  return { page, lines, widths: widthRange(pieces), ms, errorShare: errorShare(lines, page.lines) };
}

export function isReadRight(reading: PageReading): boolean {
  return reading.errorShare <= reading.page.errorShare;
}

/** Whether two runtimes read the same, letter for letter. */
export function isSameText(a: PageReading, b: PageReading): boolean {
  return a.lines.join("\n") === b.lines.join("\n");
}

function widthRange(pieces: readonly (readonly Piece[])[]): [number, number] {
  const widths = pieces.flat().map((piece) => piece.width);
  return [Math.min(...widths), Math.max(...widths)];
}
