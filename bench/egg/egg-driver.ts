/**
 * egg (the Rust crate, its version in Cargo.toml) in a child process: driver.rs is built by cargo, once
 * for each of its versions, in the repository's cache folder. Peer of the `egraph` bench.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const sources = ["Cargo.toml", "driver.rs"] as const;

/** Exact version of the crate that is built. */
export function eggVersion(): string {
  const manifest = readFileSync(join(here, "Cargo.toml"), "utf8");
  return /^egg = "=([^"]+)"/m.exec(manifest)![1]!;
}

function buildFolder(): string {
  const hash = createHash("sha256");
  for (const name of sources) hash.update(readFileSync(join(here, name)));
  const key = hash.digest("hex").slice(0, 16);
  return fileURLToPath(new URL(`../../.cache/egg-${key}/`, import.meta.url));
}

const driverPath = (): string => join(buildFolder(), "target", "release", "egg-driver");

/** What is missing, as a sentence; undefined when the driver is built. */
export function prepareEgg(install: boolean): string | undefined {
  if (existsSync(driverPath())) return undefined;
  if (!install) return "egg is not built here; run again with --install-peers (it needs cargo)";
  const folder = buildFolder();
  mkdirSync(folder, { recursive: true });
  for (const name of sources) copyFileSync(join(here, name), join(folder, name));
  const args = ["build", "--release", "--quiet"];
  const run = spawnSync("cargo", args, { cwd: folder, encoding: "utf8" });
  if (run.error !== undefined) return `no cargo: ${run.error.message}`;
  return run.status === 0 ? undefined : `cargo cannot build the driver of egg: ${run.stderr}`;
}

/** What both engines run: rules as name, left, right, and the terms to begin with. */
export interface Workload {
  readonly rules: readonly {
    readonly name: string;
    readonly left: string;
    readonly right: string;
  }[];
  readonly terms: readonly string[];
  readonly iterations: number;
  readonly proofs: boolean;
}

export interface Measured {
  readonly ns: number;
  readonly nodes: number;
  readonly classes: number;
}

/** One running driver. One request at a time. */
export class EggDriver {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  constructor() {
    this.#process = spawn(driverPath(), [], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#process.stdout });
  }

  async run({ rules, terms, iterations, proofs }: Workload): Promise<Measured> {
    const requests = [
      "clear",
      ...rules.map(({ name, left, right }) => `rule\t${name}\t${left}\t${right}`),
      ...terms.map((text) => `term\t${text}`),
      `run\t${iterations}\t${proofs ? "proofs" : "plain"}`,
    ];
    const answer = new Promise<string>((resolve, reject) => {
      this.#lines.once("line", resolve);
      this.#process.once("close", (code) => reject(new Error(`egg ended with code ${code}`)));
    });
    this.#process.stdin.write(`${requests.join("\n")}\n`);
    const [ns, nodes, classes] = (await answer).split("\t").map(Number);
    return { ns: ns!, nodes: nodes!, classes: classes! };
  }

  close(): void {
    this.#process.stdin.end();
  }
}
