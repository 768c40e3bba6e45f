/** The campaign's own judge: forgeries get past hashes and seal, to each of the checks behind them. */
import { describe, expect, it } from "vitest";
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { openModel } from "../../src/commands/library/open-model.ts";
import { sampleModel } from "../../src/commands/library/sample-model.test-support.ts";
import { stageModel } from "../../src/commands/library/staged-session.ts";
import { Rng } from "../../src/support/rng.ts";
import { artifactSeeds } from "./artifact-seeds.ts";
import { Forgery, forged, runStaged, runWhole } from "./forged-artifact.ts";

const wish = { target: "wasm", seed: 3, shapes: {}, threads: 1 } as const;
const seeds = artifactSeeds(
  unwrap(openModel({ bytes: sampleModel(48) }, { ...wish, shapes: { M: { min: 1, max: 8 } } })),
);

/** What opening it ends with. */
function codeOf(bytes: Uint8Array): string {
  const whole = openModel({ bytes }, wish);
  if (whole.ok) return "one program";
  const [first] = whole.diagnostics;
  if (first!.code !== "SCH015") return first!.code;
  const staged = stageModel({ bytes }, wish)!;
  if (!staged.ok) return staged.diagnostics[0]!.code;
  void staged.value.session.dispose();
  return "stages";
}

function codesOf(originals: readonly Uint8Array[]): ReadonlySet<string> {
  const codes = new Set<string>();
  for (let seed = 0; seed < 400; seed++) {
    const rng = new Rng(seed);
    codes.add(codeOf(forged(rng.pick(originals), seeds, rng)));
  }
  return codes;
}

describe("forged artifacts", () => {
  it("open and run where nothing was changed but that they are sealed again", () => {
    const again = (bytes: Uint8Array): Uint8Array => new Forgery(bytes).sealed();
    expect(seeds.whole.map((bytes) => codeOf(again(bytes)))).toEqual(
      seeds.whole.map(() => "one program"),
    );
    expect(seeds.staged.map((bytes) => codeOf(again(bytes)))).toEqual(
      seeds.staged.map(() => "stages"),
    );
    for (const bytes of seeds.whole) expect(runWhole(again(bytes), new Rng(1)).kind).toBe("passed");
    for (const bytes of seeds.staged)
      expect(runStaged(again(bytes), new Rng(1)).kind).toBe("passed");
  });

  it("reach the reader, the graph's checks and the validator", () => {
    const codes = codesOf(seeds.whole);
    for (const code of [
      "one program",
      "TXT001",
      "ART002",
      "ART004",
      "ART005",
      "PRG002",
      "PRG010",
    ]) {
      expect(codes).toContain(code);
    }
  });

  it("reach the order of stages, their parts and their programs", () => {
    const codes = codesOf(seeds.staged);
    for (const code of ["stages", "TXT001", "ART002", "ART005", "GRF008", "SHP004", "PRG010"]) {
      expect(codes).toContain(code);
    }
  });
});
