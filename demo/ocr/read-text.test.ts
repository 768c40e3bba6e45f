import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { fetchModel } from "../../bench/models/fetch.ts";
import { findModel } from "../../bench/models/table.ts";
import { ortNodeRuntime } from "../../bench/sessions/ort-node.ts";
import { decodeImage } from "../image/decode.ts";
import { createImage, type Image, rotateHalfTurn, rotateQuarterTurn } from "../image/image.ts";
import { pages } from "../images/pages.ts";
import { isReadRight, ocrModelNames, readPage } from "../read-pages.ts";
import { readAlphabet } from "./ctc.ts";
import { errorShare } from "./edit-distance.ts";
import { linesOf, type OcrModels, readText } from "./read-text.ts";

function bytesOf(name: string, file?: string): Uint8Array {
  const row = findModel(name)!;
  const result = fetchModel(file === undefined ? row : { ...row, file });
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

async function openModels(): Promise<OcrModels> {
  const runtime = ortNodeRuntime(1);
  const keys = bytesOf(ocrModelNames.recognise, "assets/ppocr_keys_v1.txt");
  return {
    detect: await runtime.open(bytesOf(ocrModelNames.detect)),
    angle: await runtime.open(bytesOf(ocrModelNames.angle)),
    recognise: await runtime.open(bytesOf(ocrModelNames.recognise)),
    alphabet: readAlphabet(new TextDecoder().decode(keys)),
  };
}

/** The reference runtime judges the pipeline around the models. */
describe("readText with onnxruntime-node", async () => {
  const models = await openModels();
  const photograph = pages[0]!;
  const image = decodeImage(readFileSync(new URL("../images/page.png", import.meta.url)));

  test("the photograph is read right, in lines of different widths", async () => {
    const reading = await readPage(models, photograph);
    expect(isReadRight(reading), reading.lines.join("\n")).toBe(true);
    expect(reading.widths[1]).toBeGreaterThan(1.5 * reading.widths[0]);
  });

  test.each<[string, Image]>([
    ["upside down", rotateHalfTurn(image)],
    ["running up", rotateQuarterTurn(image)],
    ["running down", rotateHalfTurn(rotateQuarterTurn(image))],
  ])("and %s", async (_how, turned) => {
    const lines = linesOf(await readText(models, turned));
    expect(errorShare(lines, photograph.lines), lines.join("\n")).toBeLessThan(0.1);
  });

  test("an empty page has no text", async () => {
    const blank = createImage(64, 48);
    blank.data.fill(255);
    expect(await readText(models, blank)).toEqual([]);
  });
});
