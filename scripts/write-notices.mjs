/**
 * Writes THIRD_PARTY_NOTICES: the licences of the packages whose code is inside dist/. They are the bare
 * imports of src/ that package.json does not have as runtime dependencies. Run after changing them;
 * test/tidy.test.ts holds the file to the installed versions.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const read = (...path) => readFileSync(join(root, ...path), "utf8");
const manifest = JSON.parse(read("package.json"));

const bsd = `Copyright 2008 Google Inc. All rights reserved.

Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met: redistributions of source code must retain the above copyright notice, this list of conditions and the following disclaimer; redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following disclaimer in the documentation and/or other materials provided with the distribution; neither the name of Google Inc. nor the names of its contributors may be used to endorse or promote products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.`;

/** Licence texts of packages that ship none: Apache-2.0 is the text of our own LICENSE. */
const texts = {
  "@bufbuild/protobuf": `Copyright 2021-2026 Buf Technologies, Inc.\n\nLicensed under the Apache License, Version 2.0; its text is in the file LICENSE beside this one. Parts of the wire format code:\n\n${bsd}`,
};

/** Packages inside dist/ that one of ours imports. */
const broughtAlong = { "@huggingface/gguf": ["@huggingface/tasks"] };

function bundled() {
  const found = new Set();
  for (const entry of readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.ts$/.test(entry.name) || /\.test/.test(entry.name)) continue;
    const code = readFileSync(join(entry.parentPath, entry.name), "utf8");
    for (const [, atTop, lazy] of code.matchAll(
      /^(?:import|export)\b[^;"']*from "((?:@[\w-]+\/)?[\w.-]+)|import\("((?:@[\w-]+\/)?[\w.-]+)"\)/gm,
    )) {
      const name = atTop ?? lazy;
      if (!manifest.devDependencies[name] || manifest.peerDependencies[name]) continue;
      found.add(name);
      for (const inner of broughtAlong[name] ?? []) found.add(inner);
    }
  }
  return [...found].sort();
}

function licenceOf(name) {
  const folder = join("node_modules", name);
  const file = readdirSync(join(root, folder)).find((f) => /^licen[cs]e/i.test(f));
  const text = file ? read(folder, file) : texts[name];
  if (!text)
    throw new Error(`${name} has no licence file and no text in scripts/write-notices.mjs`);
  return text.trim();
}

const parts = bundled().map((name) => {
  const { version, license } = JSON.parse(read("node_modules", name, "package.json"));
  return `${name} ${version} (${license})\n\n${licenceOf(name)}\n`;
});
const head = "The published files of Wavetile contain code of these packages.\n";
writeFileSync(join(root, "THIRD_PARTY_NOTICES"), [head, ...parts].join(`\n${"-".repeat(72)}\n\n`));
