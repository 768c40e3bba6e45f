/** All built-in targets by name. Adding a machine is a file under machines/ and a row here. */
import { wasmTargets } from "./machines/wasm.ts";
import type { Target } from "./target.ts";

export const targets: ReadonlyMap<string, Target> = new Map(
  wasmTargets.map((target) => [target.name, target]),
);

export type { Target } from "./target.ts";
