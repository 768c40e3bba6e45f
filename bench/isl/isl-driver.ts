/**
 * isl (the integer set library, Debian package libisl-dev) in a child process: driver.c is compiled
 * once for each of its versions into the repository's cache folder, requests and answers are lines.
 * Judge of the `affine` campaign and peer of the `affine` bench.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const cacheFolder = fileURLToPath(new URL("../../.cache/isl/", import.meta.url));

/** isl's answer: a result in its notation, that its own budget ended, or that there is no optimum. */
export type IslAnswer =
  | { readonly kind: "ok"; readonly text: string }
  | { readonly kind: "unknown" | "unbounded" };

/** What is missing, as a sentence; undefined when the driver is built. */
export function prepareIsl(install: boolean): string | undefined {
  if (existsSync(driverPath())) return undefined;
  if (install && !existsSync("/usr/include/isl/ctx.h")) {
    spawnSync("apt-get", ["update"], { stdio: "ignore" });
    spawnSync("apt-get", ["install", "-y", "libisl-dev"], { stdio: "ignore" });
  }
  return compileDriver();
}

function driverPath(): string {
  const hash = createHash("sha256")
    .update(readFileSync(join(here, "driver.c")))
    .digest("hex");
  return join(cacheFolder, `driver-${hash.slice(0, 16)}`);
}

function compileDriver(): string | undefined {
  mkdirSync(cacheFolder, { recursive: true });
  const path = driverPath();
  const unfinished = `${path}.${process.pid}`;
  const args = ["-O2", join(here, "driver.c"), "-lisl", "-o", unfinished];
  const run = spawnSync("cc", args, { encoding: "utf8" });
  if (run.error !== undefined) return `no C compiler: ${run.error.message}`;
  if (run.status !== 0) return `cannot build the isl driver (is libisl-dev there?): ${run.stderr}`;
  renameSync(unfinished, path);
  return undefined;
}

/** One running driver. Requests may overlap; answers come in their order. */
export class IslDriver {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];

  constructor() {
    this.#process = spawn(driverPath(), [], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      this.#waiting.shift()?.resolve(line);
      if (this.#waiting.length === 0) this.#process.unref();
    });
    this.#process.on("close", (code) => {
      for (const { reject } of this.#waiting.splice(0)) {
        reject(new Error(`the isl driver ended with code ${code}`));
      }
    });
    // A driver that nobody waits for does not keep this process alive.
    this.#process.unref();
    for (const pipe of [this.#process.stdin, this.#process.stdout]) (pipe as Socket).unref();
  }

  /** The result of an operation on operands in isl's notation. */
  async ask(operation: string, ...operands: readonly string[]): Promise<IslAnswer> {
    const request = [operation, ...operands].map((part) => part.replaceAll(/\s+/g, " "));
    const [kind, text] = (await this.#send(request.join("\t"))).split("\t");
    if (kind === "ok") return { kind, text: text! };
    if (kind === "unknown" || kind === "unbounded") return { kind };
    throw new Error(`isl on ${request.join(" | ")}: ${text}`);
  }

  /** Mean nanoseconds of `repeats` runs on fresh operands, or undefined where isl has no answer. */
  async time(
    repeats: number,
    operation: string,
    ...operands: readonly string[]
  ): Promise<number | undefined> {
    const found = await this.ask("time", String(repeats), operation, ...operands);
    return found.kind === "ok" ? Number(found.text) : undefined;
  }

  close(): void {
    this.#process.stdin.end();
  }

  #send(line: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#process.ref();
      this.#process.stdin.write(`${line}\n`);
    });
  }
}
