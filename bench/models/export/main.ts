/**
 * `npx tsx bench/models/export/main.ts NAME…`: writes the named exported models into the cache, where
 * they are not there yet, and prints the path of each; without a name, the names there are.
 */
import { modelPath } from "../fetch.ts";
import { type RecipeName, recipes } from "./recipes.ts";

const names = process.argv.slice(2);
const known = (name: string): name is RecipeName => Object.hasOwn(recipes, name);
const unknown = names.filter((name) => !known(name));
if (names.length === 0 || unknown.length > 0) {
  const complaint = unknown.length > 0 ? `no model ${unknown.join(", ")}; ` : "";
  process.stderr.write(`${complaint}models: ${Object.keys(recipes).join(", ")}\n`);
  process.exitCode = names.length === 0 ? 0 : 2;
} else {
  for (const name of names.filter(known)) {
    const source = { kind: "exported", recipe: name } as const;
    process.stdout.write(`${modelPath({ name, source, file: "model.onnx" })}\n`);
  }
}
