/** The version of the package, as artifacts and reports carry it, and the build of this code. */
import manifest from "../../package.json" with { type: "json" };

/** Written by the bundler: a hash of the sources. */
declare const wavetileBuild: string | undefined;

export const version: string = manifest.version;

/** Equal for equal code only; absent where the sources run without having been built. */
export const build: string | undefined =
  typeof wavetileBuild === "undefined" ? undefined : wavetileBuild;
