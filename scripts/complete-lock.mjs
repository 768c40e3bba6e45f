/**
 * Adds to package-lock.json the optional platform packages that the registry in use did not offer, so
 * that `npm ci` finds the lock file complete on every platform. npm skips them by `os` and `cpu` where
 * they do not apply. Run after `npm install` whenever `npm ci` says "Missing: … from lock file".
 */
import { readFileSync, writeFileSync } from "node:fs";

const platforms = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const processors = [
  "arm64",
  "arm",
  "ia32",
  "loong64",
  "mips64el",
  "ppc64",
  "riscv64",
  "s390x",
  "wasm32",
  "x64",
];
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
let added = 0;
for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`;
    const flat = `node_modules/${name}`;
    if (lock.packages[flat] || lock.packages[nested]) continue;
    const os = platforms.filter((p) => name.includes(`-${p}`) || name.includes(`/${p}`));
    const cpu = processors.filter((c) => name.includes(`-${c}`)).slice(0, 1);
    lock.packages[flat] = {
      version,
      dev: true,
      optional: true,
      os: os.length ? os : ["none"],
      cpu,
    };
    if (entry.dev === undefined) delete lock.packages[flat].dev;
    added++;
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
);
writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} optional packages added to the lock file\n`);
