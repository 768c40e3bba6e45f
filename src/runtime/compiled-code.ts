/**
 * The engine's own cache of compiled JavaScript, in the user's cache folder: Node.js from 22.8 on reads the
 * bytecode of the package's files there instead of compiling them again (`wavetile optimize` of MobileNetV2 on
 * Node.js 24: 0.93 of the time). Earlier versions have none. Not in the system's folder for temporary
 * files, where others could leave code for us.
 */
import * as module from "node:module";
import { folderOf } from "./files/folders.ts";
import { join } from "./files/paths.ts";

interface WithCompileCache {
  readonly enableCompileCache?: (folder: string) => unknown;
}

/** Of modules that are loaded from now on. */
export function keepCompiledCode(): void {
  (module as WithCompileCache).enableCompileCache?.(join(folderOf("cache"), "code"));
}
