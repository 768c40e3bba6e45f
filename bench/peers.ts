/**
 * The packages that a suite measures against. They are installed with the development dependencies;
 * where one is missing the bench says so, and installs it only when asked (`--install-peers`), with
 * scripts off and without touching package.json.
 */
import { spawnSync } from "node:child_process";
import { installedFolder } from "./installed.ts";
import type { PeerPackage } from "./suites/suite.ts";

export function missingPeers(peers: readonly PeerPackage[]): PeerPackage[] {
  return peers.filter(({ name }) => installedFolder(name) === undefined);
}

/** Installs the packages; gives npm's complaint when it cannot. */
export function installPeers(peers: readonly PeerPackage[]): string | undefined {
  const specs = peers.map(({ name, version }) => `${name}@${version}`);
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", ...specs];
  const shell = process.platform === "win32";
  const run = spawnSync("npm", args, { encoding: "utf8", timeout: 600_000, shell });
  if (run.error !== undefined) return run.error.message;
  return run.status === 0 ? undefined : run.stderr.trim();
}
