/**
 * `npm run demo`: reads the text of real pictures with the PP-OCR models, listens with a speech
 * detector and wake-word heads, and says how the outputs compare with the reference. stdout carries
 * the result. Exit codes: 0 right, 1 wrong text, 3 outputs disagree with the reference, 6 a model
 * cannot be had.
 */
import { availableParallelism } from "node:os";
import { randomInputs } from "../bench/models/random-inputs.ts";
import { findModel } from "../bench/models/table.ts";
import { exitCodes, runToExit } from "../bench/refusal.ts";
import { ortNodeRuntime } from "../bench/sessions/ort-node.ts";
import { type Session, takeFloat32 } from "../bench/sessions/session.ts";
import { wavetileRuntime } from "../bench/sessions/wavetile.ts";
import { Rng } from "../src/support/rng.ts";
import { agrees } from "./agreement.ts";
import { synthesiseVoice } from "./audio/signal.ts";
import { detectSpeech } from "./audio/speech.ts";
import { pages } from "./images/pages.ts";
import { readAlphabet } from "./ocr/ctc.ts";
import type { OcrModels } from "./ocr/read-text.ts";
import {
  describeAgreement,
  describeReading,
  describeRegions,
  describeSameText,
  describeSpeech,
  describeWakeWord,
} from "./print.ts";
import { isReadRight, isSameText, ocrModelNames, readPage } from "./read-pages.ts";
import { readModelFile, Stage } from "./stage.ts";

const seed = 1;
const randomRuns = 20;
const wakeWords = ["wake-hello-deepa", "wake-hello-deepa-old", "wake-namaste-deepa"] as const;

/** What became of the pictures: is the text right, and is it the reference's, letter for letter? */
interface TextVerdict {
  readonly right: boolean;
  readonly same: boolean;
}

async function showText(stage: Stage): Promise<TextVerdict> {
  const models = await openOcr(stage);
  let [right, same] = [true, true];
  for (const page of pages) {
    const reading = await readPage(models, page);
    print(describeReading(reading));
    right &&= isReadRight(reading);
    if (!stage.compares) continue;
    const expected = await readPage(referenceModels(stage, models.alphabet), page);
    print(describeSameText(reading, expected));
    same &&= isSameText(reading, expected);
  }
  return { right, same };
}

function referenceModels(stage: Stage, alphabet: readonly string[]): OcrModels {
  const { detect, angle, recognise } = ocrModelNames;
  return {
    detect: stage.referenceOf(detect),
    angle: stage.referenceOf(angle),
    recognise: stage.referenceOf(recognise),
    alphabet,
  };
}

async function openOcr(stage: Stage): Promise<OcrModels> {
  const { source } = findModel(ocrModelNames.recognise)!;
  const keys = readModelFile({ name: "alphabet", source, file: "assets/ppocr_keys_v1.txt" });
  return {
    detect: await stage.open(ocrModelNames.detect),
    angle: await stage.open(ocrModelNames.angle),
    recognise: await stage.open(ocrModelNames.recognise),
    alphabet: readAlphabet(new TextDecoder().decode(keys)),
  };
}

async function showSpeech(stage: Stage): Promise<void> {
  const session = await stage.open("silero-vad-op18-ifless");
  const probabilities = await detectSpeech(session, synthesiseVoice(3, new Rng(seed)));
  print(describeSpeech(probabilities));
  await runRandomly(session, "silero-vad-op18-ifless");
}

async function showWakeWords(stage: Stage): Promise<void> {
  for (const name of wakeWords) {
    const session = await stage.open(name);
    print(describeWakeWord(name, await runRandomly(session, name)));
  }
}

/** First element of the first output for each of the random inputs. */
async function runRandomly(session: Session, name: string): Promise<number[]> {
  const rng = new Rng(seed);
  const firsts: number[] = [];
  for (let i = 0; i < randomRuns; i++) {
    const outputs = await session.run(randomInputs(findModel(name)!.cases[0]!, rng));
    firsts.push(takeFloat32(outputs, session.outputs[0]!.name).data[0]!);
  }
  return firsts;
}

async function main(): Promise<number> {
  const threads = Math.min(2, availableParallelism());
  const stage = new Stage(ortNodeRuntime(threads), wavetileRuntime("wasm", threads));
  print(`${stage.shown.name} ${stage.shown.version}, ${threads} threads\n`);
  const text = await showText(stage);
  await showSpeech(stage);
  await showWakeWords(stage);
  for (const { model, regions } of stage.regions()) {
    if (regions.length > 0) print(describeRegions(model, regions));
  }
  const agreements = stage.agreements();
  if (agreements.length > 0) print(describeAgreement(agreements));
  await stage.close();
  if (!text.same || !agreements.every(agrees)) return exitCodes.mismatch;
  return text.right ? 0 : exitCodes.failed;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

await runToExit(main);
