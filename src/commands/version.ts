/** The version of the package, as artifacts and reports carry it; package.json has the same. */
export const version = "0.1.0";
