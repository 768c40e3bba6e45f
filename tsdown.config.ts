import { defineConfig } from "tsdown";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    affine: "src/affine/index.ts",
    egraph: "src/egraph/index.ts",
    search: "src/search/index.ts",
    cli: "src/cli/main.ts",
    "candidate-child": "src/runtime/child/entry.ts",
  },
  format: "esm",
  platform: "node",
  target: "node20",
  dts: true,
  fixedExtension: false,
  clean: true,
  // An optional peer: found at run time or not at all.
  deps: { neverBundle: ["onnxruntime-node"] },
});
