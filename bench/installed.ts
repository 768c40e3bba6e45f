/** Finds installed packages by folder, whatever their `exports` hide. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { invariant } from "../src/support/invariant.ts";

/** The package's folder as Node would find it from here, if it is installed. */
export function installedFolder(packageName: string): string | undefined {
  const roots = createRequire(import.meta.url).resolve.paths(packageName) ?? [];
  const folders = roots.map((root) => join(root, packageName));
  return folders.find((folder) => existsSync(join(folder, "package.json")));
}

/** The version of a package that is known to be installed. */
export function installedVersion(packageName: string): string {
  const folder = installedFolder(packageName);
  invariant(folder !== undefined, () => `${packageName} is not installed`);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    version: string;
  };
  return version;
}

/** Wavetile's own version. */
export function ownVersion(): string {
  const { version } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  ) as { version: string };
  return version;
}
