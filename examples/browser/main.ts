/** `npm run browser [-- --plain]`: builds the example and serves it until it is stopped. */
import { buildSite, siteFolder } from "./build.ts";
import { serve } from "./serve.ts";

await buildSite();
const isolated = !process.argv.includes("--plain");
const { url } = await serve(siteFolder, { isolated, port: 8080 });
console.log(`${url} (${isolated ? "isolated: with threads" : "not isolated: one thread"})`);
