/**
 * Where Wavetile keeps things between runs: the folders of the XDG Base Directory Specification, or
 * all under `WAVETILE_HOME` where that is set. Nothing is created here.
 */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

export type FolderKind = "cache" | "data" | "config";

type Environment = Readonly<Record<string, string | undefined>>;

const rows: Readonly<Record<FolderKind, readonly [variable: string, standard: string]>> = {
  cache: ["XDG_CACHE_HOME", ".cache"],
  data: ["XDG_DATA_HOME", ".local/share"],
  config: ["XDG_CONFIG_HOME", ".config"],
};

export function folderOf(kind: FolderKind, environment: Environment = process.env): string {
  const own = environment.WAVETILE_HOME;
  if (own) return join(own, kind);
  const [variable, standard] = rows[kind];
  const base = environment[variable];
  // The specification: paths that are not absolute are invalid and ignored.
  return join(base && isAbsolute(base) ? base : join(homedir(), standard), "wavetile");
}
