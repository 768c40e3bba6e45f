import { describe, expect, test } from "vitest";
import { readBenchCommandLine } from "./command-line.ts";
import { installedFolder, installedVersion } from "./installed.ts";
import { missingPeers } from "./peers.ts";
import { Refusal } from "./refusal.ts";
import { onnxruntimePeers } from "./suites/onnxruntime-peers.ts";
import { suites } from "./suites/registry.ts";
import type { Suite } from "./suites/suite.ts";

const suite: Suite = {
  name: "s",
  summary: "a suite",
  targets: ["wasm", "x64"],
  peers: [],
  load: async () => ({ versions: {}, cases: [] }),
};

const read = (...args: string[]) => readBenchCommandLine(args, [suite], 4);

describe("readBenchCommandLine", () => {
  test("the first target and one thread are the defaults", () => {
    expect(read("s")).toEqual({
      suite,
      target: "wasm",
      threads: 1,
      only: [],
      rounds: 15,
      seconds: 10,
      clock: "wall",
      json: false,
      installPeers: false,
    });
    const all = read("s", "--target", "x64", "--threads", "4", "--json", "--install-peers");
    expect(all).toMatchObject({ suite, target: "x64", threads: 4, json: true, installPeers: true });
    expect(read("s", "--clock", "processor").clock).toBe("processor");
    expect(read("s", "--only", "a/", "--only", "b").only).toEqual(["a/", "b"]);
    const keeping = { ...suite, recordsTimes: true } as const;
    const replayed = readBenchCommandLine(["s", "--replay", "f.json"], [keeping], 4);
    expect(replayed.replay).toBe("f.json");
    expect("record" in replayed).toBe(false);
    expect(read("s", "--rounds", "41", "--seconds", "60")).toMatchObject({
      rounds: 41,
      seconds: 60,
    });
  });

  test("several at once are for suites whose models take them", () => {
    const batched = { ...suite, takesBatch: true } as const;
    expect(readBenchCommandLine(["s", "--batch", "8"], [batched], 4).batch).toBe(8);
    expect(() => readBenchCommandLine(["s", "--batch", "0"], [batched], 4)).toThrow(/1 to 64/);
    expect(() => read("s", "--batch", "8")).toThrow(/take several at once/);
  });

  test.each([
    [[], /name one suite:\n {2}s: a suite/],
    [["t"], /name one suite/],
    [["s", "s"], /name one suite/],
    [["s", "--target", "cuda"], /no target "cuda"; it has wasm, x64/],
    [["s", "--threads", "5"], /--threads takes 1 to 4, found "5"/],
    [["s", "--threads", "1.5"], /found "1.5"/],
    [["s", "--threads", ""], /found ""/],
    [["s", "--rounds", "4"], /--rounds takes 5 to 1000, found "4"/],
    [["s", "--clock", "sun"], /--clock takes wall or/],
    [["s", "--clock", "processor", "--threads", "2"], /with one thread, processor/],
    [["s", "--seconds", "0"], /--seconds takes 1 to 3600/],
    [["s", "--fast"], /--fast/],
    [["s", "--replay", "f.json"], /for suites that keep times/],
  ])("%j is refused", (args, words) => {
    try {
      read(...args);
    } catch (error) {
      expect(error).toBeInstanceOf(Refusal);
      expect((error as Refusal).exitCode).toBe(2);
      expect((error as Refusal).message).toMatch(words);
      return;
    }
    expect.unreachable("accepted");
  });
});

test("--help lists the options and the suites and is no error", () => {
  try {
    read("--help");
  } catch (error) {
    expect((error as Refusal).exitCode).toBe(0);
    expect((error as Refusal).message).toMatch(/--rounds N[\s\S]*\n {2}s: /);
    return;
  }
  expect.unreachable("no help");
});

test("suites have distinct names and at least one target", () => {
  expect(new Set(suites.map((s) => s.name)).size).toBe(suites.length);
  for (const s of suites) expect(s.targets.length).toBeGreaterThan(0);
});

test("installed packages are found, missing ones named, pinned versions true", () => {
  expect(installedFolder("no-such-package")).toBe(undefined);
  const absent = { name: "no-such-package", version: "1.0.0" };
  expect(missingPeers([...onnxruntimePeers, absent])).toEqual([absent]);
  for (const { name, version } of onnxruntimePeers) expect(installedVersion(name)).toBe(version);
});
