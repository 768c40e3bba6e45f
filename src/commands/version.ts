/** The version of the package, as artifacts and reports carry it. */
import manifest from "../../package.json" with { type: "json" };

export const version: string = manifest.version;
