import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Rng } from "../../src/support/rng.ts";
import { writeArchive } from "./archive-for-tests.ts";
import { cacheFolder, type FetchPlace, fetchModel } from "./fetch.ts";
import { randomInputs } from "./random-inputs.ts";
import { findModel, modelTable } from "./table.ts";

const archive = writeArchive([{ path: "package/weights/m.onnx", body: "model" }]);
const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
const row = {
  name: "m",
  source: { kind: "fetched", package: "@scope/m", licence: "MIT", version: "1.2.3", integrity },
  file: "weights/m.onnx",
} as const;

let folder: string;
let downloads: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fetch-test-"));
  downloads = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A place whose registry serves `bytes`. */
function placeServing(bytes: Uint8Array): FetchPlace {
  return {
    cacheFolder: join(folder, "cache"),
    download: (spec, into) => {
      downloads.push(spec);
      const path = join(into, "m.tgz");
      writeFileSync(path, bytes);
      return { ok: true, path };
    },
  };
}

function checkRefused(result: ReturnType<typeof fetchModel>, code: string): void {
  expect(result.ok ? "accepted" : result.diagnostics[0]!.code).toBe(code);
}

describe("fetchModel", () => {
  test("downloads once, then reads the cache", () => {
    const place = placeServing(archive);
    for (let i = 0; i < 2; i++) {
      const result = fetchModel(row, place);
      expect(result.ok && Buffer.from(result.value).toString()).toBe("model");
    }
    expect(downloads).toEqual(["@scope/m@1.2.3"]);
    expect(readdirSync(place.cacheFolder)).toEqual(["@scope_m@1.2.3.tgz"]);
  });

  test("replaces a damaged archive of the cache", () => {
    const place = placeServing(archive);
    fetchModel(row, place);
    const cached = join(place.cacheFolder, "@scope_m@1.2.3.tgz");
    writeFileSync(cached, archive.subarray(0, 40));
    expect(fetchModel(row, place).ok).toBe(true);
    expect(downloads.length).toBe(2);
    expect(readFileSync(cached).length).toBe(archive.length);
  });

  test("FET001: no network", () => {
    const place = placeServing(archive);
    const offline: FetchPlace = { ...place, download: () => ({ ok: false, reason: "offline" }) };
    checkRefused(fetchModel(row, offline), "FET001");
    expect(readdirSync(place.cacheFolder)).toEqual([]);
  });

  test("FET002: another archive than the table's leaves nothing behind", () => {
    const place = placeServing(writeArchive([{ path: "package/weights/m.onnx", body: "evil" }]));
    checkRefused(fetchModel(row, place), "FET002");
    expect(readdirSync(place.cacheFolder)).toEqual([]);
  });

  test("FET004: a file that the package does not have", () => {
    checkRefused(fetchModel({ ...row, file: "weights/n.onnx" }, placeServing(archive)), "FET004");
    const source = { kind: "dependency", package: "no-such-package", licence: "" } as const;
    checkRefused(fetchModel({ ...row, source }), "FET004");
  });

  test("finds an installed dependency's file", () => {
    expect(fetchModel(findModel("ppocr-v2-cls")!).ok).toBe(true);
  });
});

test("the cache folder follows WAVETILE_HOME, then XDG_CACHE_HOME, then the home folder", () => {
  const paths = [{ WAVETILE_HOME: "/w", XDG_CACHE_HOME: "/x" }, { XDG_CACHE_HOME: "/x" }, {}];
  expect(paths.map((environment) => cacheFolder(environment, "/home/u"))).toEqual([
    join("/w", "cache", "packages"),
    join("/x", "wavetile", "packages"),
    join("/home/u", ".cache", "wavetile", "packages"),
  ]);
});

test("rows have distinct names and cases, and inputs are the same for the same seed", () => {
  expect(new Set(modelTable.map((r) => r.name)).size).toBe(modelTable.length);
  for (const { cases } of modelTable) {
    expect(new Set(cases.map((c) => c.name)).size).toBe(cases.length);
  }
  for (const name of ["silero-vad", "wake-alexa", "face-eye"]) {
    const modelCase = findModel(name)!.cases[0]!;
    expect(randomInputs(modelCase, new Rng(3))).toEqual(randomInputs(modelCase, new Rng(3)));
    expect(randomInputs(modelCase, new Rng(3))).not.toEqual(randomInputs(modelCase, new Rng(4)));
  }
  const { sr } = randomInputs(findModel("silero-vad")!.cases[0]!, new Rng(1));
  expect(sr).toEqual({ type: "int64", dims: [], data: BigInt64Array.from([16000n]) });
});
