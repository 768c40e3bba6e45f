/** Whether and in which version an optional package can be found from here, without loading it. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemCode } from "./system-error.ts";

/** Looks for the package in the node_modules of this folder and those above it, as imports do. */
export function installedVersion(name: string): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const manifest = readIfThere(join(folder, "node_modules", name, "package.json"));
    if (manifest !== undefined) return (JSON.parse(manifest) as { version: string }).version;
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    systemCode(error);
    return undefined;
  }
}
