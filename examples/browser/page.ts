/**
 * Reads the text of a picture in the browser: the demo's pipeline over three artifacts, which
 * `wavetile optimize` wrote. Nothing leaves the page.
 */
import { type ArtifactModel, loadArtifact, type Port, WavetileError } from "wavetile/web";
import type { Session, TensorInfo } from "../../bench/sessions/session.ts";
import { elementTypeFor, fromStored, toStored } from "../../bench/sessions/stored-tensors.ts";
import { createImage, type Image } from "../../demo/image/image.ts";
import { shrinkTo } from "../../demo/image/shrink.ts";
import { readAlphabet } from "../../demo/ocr/ctc.ts";
import { linesOf, type OcrModels, readText } from "../../demo/ocr/read-text.ts";
import { element, isIsolated, readPixels } from "./page-dom.ts";

/** Longest side that a picture is worked on at; larger ones are averaged down. */
const longestSide = 1400;

async function fetched(path: string): Promise<Response> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response;
}

async function openModel(name: string): Promise<ArtifactModel> {
  const bytes = await (await fetched(`models/${name}.wt`)).arrayBuffer();
  return loadArtifact(new Uint8Array(bytes));
}

/** A model behind the interface through which the demo's pipeline sees every runtime. */
function sessionOf(model: ArtifactModel): Session {
  return {
    inputs: model.inputs.map(describe),
    outputs: model.outputs.map(describe),
    run: async (feeds) => {
      const inputs = Object.entries(feeds).map(([name, t]) => [name, toStored(t)] as const);
      const outputs = await model.run(Object.fromEntries(inputs));
      return Object.fromEntries(Object.entries(outputs).map(([n, t]) => [n, fromStored(t)]));
    },
    release: () => model.dispose(),
  };
}

function describe({ name, dtype, shape }: Port): TensorInfo {
  return { name, type: elementTypeFor(dtype), dims: shape };
}

async function openModels(): Promise<{ readonly models: OcrModels; readonly threads: number }> {
  const [detect, angle, recognise] = [
    await openModel("detect"),
    await openModel("angle"),
    await openModel("recognise"),
  ];
  const alphabet = readAlphabet(await (await fetched("models/alphabet.txt")).text());
  const models = {
    detect: sessionOf(detect),
    angle: sessionOf(angle),
    recognise: sessionOf(recognise),
    alphabet,
  };
  return { models, threads: detect.threads };
}

async function chosenPicture(): Promise<Blob> {
  const own = element("file").files?.[0];
  return own ?? (await fetched(`pictures/${element("picture").value}`)).blob();
}

async function readPicture(file: Blob): Promise<Image> {
  const { width, height, rgba } = await readPixels(file);
  const image = createImage(width, height);
  for (let p = 0; p < width * height; p++) {
    for (let c = 0; c < 3; c++) image.data[3 * p + c] = rgba[4 * p + c]!;
  }
  return shrinkTo(image, longestSide);
}

let opened: ReturnType<typeof openModels> | undefined;

async function read(): Promise<void> {
  const [status, result] = [element("status"), element("result")];
  result.textContent = "";
  status.textContent = "loading three models…";
  opened ??= openModels();
  const { models, threads } = await opened;
  status.textContent = "reading…";
  const image = await readPicture(await chosenPicture());
  const start = performance.now();
  const lines = linesOf(await readText(models, image));
  const ms = Math.round(performance.now() - start);
  result.textContent = lines.join("\n");
  result.dataset.threads = String(threads);
  const isolation = isIsolated ? "isolated" : "not isolated";
  status.textContent = `${lines.length} lines in ${ms} ms, threads: ${threads} (the page is ${isolation})`;
  element("read").dataset.done = "yes";
}

element("read").addEventListener("click", () => {
  const button = element("read");
  button.disabled = true;
  button.dataset.done = "no";
  read()
    .catch((error: unknown) => {
      opened = undefined;
      const known = error instanceof WavetileError || error instanceof Error;
      element("status").textContent = known ? error.message : String(error);
      button.dataset.done = "failed";
    })
    .finally(() => {
      button.disabled = false;
    });
});
element("status").textContent = "ready";
