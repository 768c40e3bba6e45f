import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openAppendLog } from "./append-log.ts";
import { openRanges } from "./byte-ranges.ts";
import { writeAtomically, writePartsAtomically } from "./files.ts";
import { folderOf } from "./folders.ts";
import { openModelFile, readModelFile } from "./model-source.ts";
import { readFully, readWhole } from "./plain-file.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-files-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("files", () => {
  it("writes whole files, over old ones, and leaves no other file behind", () => {
    const path = join(folder, "a", "b.txt");
    expect(writeAtomically(path, "one").ok).toBe(true);
    expect(writeAtomically(path, Uint8Array.of(50)).ok).toBe(true);
    expect(readWhole(path)).toMatchObject({ ok: true, value: Uint8Array.of(50) });
    expect(readdirSync(join(folder, "a"))).toEqual(["b.txt"]);
  });
  it("says why a file cannot be read (RUN030) or written (RUN031)", () => {
    expect(readWhole(join(folder, "none"))).toMatchObject({
      ok: false,
      diagnostics: [
        { code: "RUN030", message: `${folder}/none cannot be read: it does not exist` },
      ],
    });
    writeFileSync(join(folder, "plain"), "");
    expect(writeAtomically(join(folder, "plain", "x"), "x")).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN031" }],
    });
    mkdirSync(join(folder, "taken"));
    expect(writeAtomically(join(folder, "taken"), "x")).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN031" }],
    });
    expect(readdirSync(folder)).toEqual(["plain", "taken"]);
    if (existsSync("/proc/self")) {
      // Folders of the kernel's own take no children and say so in an unusual way.
      expect(writeAtomically("/proc/none/x", "x")).toMatchObject({ ok: false });
    }
  });
});

describe("model source", () => {
  it("reads ranges of files in the model's folder and nowhere else", () => {
    const inside = join(folder, "model");
    mkdirSync(join(inside, "parts"), { recursive: true });
    writeFileSync(join(folder, "secret"), "secret");
    writeFileSync(join(inside, "m.onnx"), "m");
    writeFileSync(join(inside, "parts", "w"), "0123456789");
    symlinkSync(join(folder, "secret"), join(inside, "leak"));
    symlinkSync(folder, join(inside, "up"));
    symlinkSync(join("parts", "w"), join(inside, "alias"));
    const source = readModelFile(join(inside, "m.onnx"));
    if (!source.ok) throw new Error("unreadable");
    const { readExternal } = source.value;
    const text = (name: string) => readExternal(name, 2, 3);
    expect(text("parts/w")).toMatchObject({ value: new TextEncoder().encode("234") });
    expect(text("alias")).toMatchObject({ value: new TextEncoder().encode("234") });
    for (const name of ["leak", "up/secret", "../secret"]) {
      expect(text(name)).toMatchObject({ diagnostics: [{ code: "RUN032" }] });
    }
    expect(readExternal("parts/w", 8, 3)).toMatchObject({ diagnostics: [{ code: "RUN030" }] });
    expect(text("parts")).toMatchObject({ diagnostics: [{ code: "RUN030" }] });
    expect(text("absent")).toMatchObject({ diagnostics: [{ code: "RUN030" }] });
  });
});

it("reads on where one call gives less than was asked for", () => {
  const path = join(folder, "long");
  writeFileSync(path, "0123456789");
  const file = openSync(path, "r");
  const bytes = new Uint8Array(7);
  expect(readFully(file, bytes, 2, 3)).toBe(7);
  expect(new TextDecoder().decode(bytes)).toBe("2345678");
  expect(readFully(file, bytes, 6, 3)).toBe(4);
  closeSync(file);
});

it.skipIf(process.platform === "win32")("a pipe that nobody writes to is not waited for", () => {
  writeFileSync(join(folder, "m.onnx"), "m");
  execFileSync("mkfifo", [join(folder, "pipe")]);
  const source = readModelFile(join(folder, "m.onnx"));
  if (!source.ok) throw new Error("unreadable");
  expect(source.value.readExternal("pipe", 0, 4)).toMatchObject({
    diagnostics: [{ code: "RUN030", message: expect.stringContaining("no plain file") }],
  });
});

describe.skipIf(process.platform === "win32")("what is no plain file", () => {
  const refused = { ok: false, diagnostics: [{ code: "RUN030" }] };

  it("is refused at once: a pipe in a folder, a device, a folder", () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    symlinkSync("/dev/zero", join(folder, "zeros"));
    for (const path of [pipe, "/dev/zero", join(folder, "zeros"), folder]) {
      expect([path, readWhole(path)]).toMatchObject([path, refused]);
      expect([path, openRanges(path)]).toMatchObject([path, refused]);
      expect([path, readModelFile(path)]).toMatchObject([path, refused]);
      expect([path, openModelFile(path, () => true)]).toMatchObject([path, refused]);
      expect([path, openAppendLog(path).read()]).toMatchObject([path, refused]);
    }
  });

  it("is read where it is a pipe that is open, up to a bound; a model from there has no folder", () => {
    let pipes = 0;
    const through = (text: string, read: (path: string) => unknown): void => {
      const pipe = join(folder, `pipe${pipes++}`);
      execFileSync("mkfifo", [pipe]);
      const from = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
      writeFileSync(pipe, text);
      read(`/dev/fd/${from}`);
      closeSync(from);
    };
    through("0123456789", (path) => {
      const value = new TextEncoder().encode("0123456789");
      expect(readWhole(path)).toMatchObject({ ok: true, value });
      // Commands may open their model twice.
      expect(readWhole(path)).toMatchObject({ ok: true, value });
    });
    through("0123456789", (path) => expect(readWhole(path, 9)).toMatchObject(refused));
    through("m", (path) => {
      const source = readModelFile(path);
      if (!source.ok) throw new Error("unreadable");
      expect(source.value.readExternal("stdin", 0, 1)).toMatchObject(refused);
    });
  });

  it.skipIf(!existsSync("/proc/self/status"))(
    "files of the kernel that say they are empty are read",
    () => {
      const status = readWhole("/proc/self/status");
      expect(status.ok && status.value.length).toBeGreaterThan(100);
    },
  );
});

describe("folders", () => {
  it("follow WAVETILE_HOME, then XDG, then the home folder", () => {
    expect(folderOf("cache", { WAVETILE_HOME: "/w", XDG_CACHE_HOME: "/x" })).toBe("/w/cache");
    expect(folderOf("cache", { XDG_CACHE_HOME: "/x" })).toBe("/x/wavetile");
    expect(folderOf("data", { XDG_DATA_HOME: "relative" })).toMatch(/\.local\/share\/wavetile$/);
    expect(existsSync(folderOf("config", { WAVETILE_HOME: join(folder, "h") }))).toBe(false);
  });
});

it("parts lie at their offsets, with zeros between", () => {
  const path = join(folder, "parts.bin");
  const parts = [
    { offset: 0, read: () => Uint8Array.of(1, 2) },
    { offset: 4, read: () => Uint8Array.of(3) },
  ];
  expect(writePartsAtomically(path, parts).ok).toBe(true);
  expect([...readFileSync(path)]).toEqual([1, 2, 0, 0, 3]);
  expect(writePartsAtomically(path, parts, 7).ok).toBe(true);
  expect([...readFileSync(path)]).toEqual([1, 2, 0, 0, 3, 0, 0]);
  const before = readdirSync(folder);
  const gone = { offset: 5, read: (): never => expect.fail("gone") };
  expect(() => writePartsAtomically(path, [...parts, gone])).toThrow("gone");
  expect(readdirSync(folder)).toEqual(before);
});
