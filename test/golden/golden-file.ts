/**
 * Golden files: what a stage printed when somebody last looked at it. A difference fails the test;
 * `UPDATE_GOLDEN=1 npx vitest run test/golden` writes what is printed now, for the reviewer to read in
 * the diff. A file is a line about its subject and sections `== name`, one a text form.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { parseGolden, printGolden, type Sections } from "./golden-sections.ts";

/** Compares with `test/golden/PATH`, section by section, or writes it. */
export function checkGolden(path: string, about: string, sections: Sections): void {
  const file = fileURLToPath(new URL(path, import.meta.url));
  if (process.env.UPDATE_GOLDEN) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, printGolden(about, sections));
    return;
  }
  const golden = parseGolden(readFileSync(file, "utf8"));
  expect([...sections.keys()]).toEqual([...golden.keys()]);
  for (const [name, text] of sections) {
    expect(text, `${path}, section ${name}; UPDATE_GOLDEN=1 accepts it`).toBe(golden.get(name));
  }
}
