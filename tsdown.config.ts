import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { defineConfig, type UserConfig } from "tsdown";
import { arrayLoops } from "./scripts/array-loops.ts";

/** A hash over what the bundle is made of: what it keeps in caches is not read by another build. */
function hashSources(): string {
  const hash = createHash("sha256").update(readFileSync("package.json"));
  const names = readdirSync("src", { recursive: true, encoding: "utf8" });
  for (const name of names.filter((n) => n.endsWith(".ts")).sort()) {
    hash.update(`${name}\0`).update(readFileSync(`src/${name}`));
  }
  return hash.digest("hex").slice(0, 32);
}

/** The native compiler, which writes the declarations. */
function findNativeCompiler(): string {
  const { resolve } = createRequire(`${process.cwd()}/node_modules/typescript-native/package.json`);
  const name = `@typescript/typescript-${process.platform}-${process.arch}`;
  const lib = resolve(`${name}/package.json`).replace(/package\.json$/, "lib/");
  return `${lib}tsc${process.platform === "win32" ? ".exe" : ""}`;
}

const common: UserConfig = {
  format: "esm",
  target: "node20",
  dts: { tsgo: { path: findNativeCompiler() } },
  fixedExtension: false,
  define: { wavetileBuild: JSON.stringify(hashSources()) },
  plugins: [arrayLoops("tsconfig.json")],
};

const node = defineConfig({
  ...common,
  entry: {
    index: "src/index.ts",
    affine: "src/affine/index.ts",
    egraph: "src/egraph/index.ts",
    search: "src/search/index.ts",
    cli: "src/cli/main.ts",
    "candidate-child": "src/runtime/child/entry.ts",
    "portable-child": "src/cli/portable-entry.ts",
  },
  platform: "node",
  clean: true,
  // An optional peer: found at run time or not at all.
  deps: { neverBundle: ["onnxruntime-node"] },
});

// One file without imports: a page can load it as it is.
const web = defineConfig({
  ...common,
  entry: { web: "src/web/index.ts" },
  platform: "browser",
  target: "es2022",
  clean: false,
});

export default [node, web];
