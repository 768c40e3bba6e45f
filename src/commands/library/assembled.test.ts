/** What an assembler took travels with an artifact, for machines without the device. */
import { expect, it } from "vitest";
import type { SearchReport } from "../../artifact/artifact.ts";
import { targets } from "../../target/index.ts";
import { assembledFor, withAssembled } from "./assembled.ts";
import type { OpenModel } from "./open-model.ts";

const took = [{ kernel: "S0", registers: 64, localBytes: 0 }];
const search = (target: string): SearchReport => ({
  ...{ target, solver: "collapse", reason: "", objectivePs: 1, boundPs: 1, gap: 0 },
  ...{ variables: 1, transitions: 0, legal: 1, searched: 1, nodes: 0, work: 0, regions: [] },
});

it("is kept beside the search of its target alone", () => {
  const meta = { searches: [search("h200"), search("wasm")] };
  const kept = withAssembled(meta, targets.get("h200")!, took);
  expect(kept.searches!.map((s) => s.assembled)).toEqual([took, undefined]);
  expect(withAssembled(meta, targets.get("h200")!, undefined)).toBe(meta);
});

it("is what explain goes by where no device is", () => {
  // The target is one that no machine of these tests has.
  const target = targets.get("b200") ?? targets.get("h200")!;
  const opened = { target, code: {} } as unknown as OpenModel;
  const found = assembledFor(opened, { ...search(target.name), assembled: took });
  expect(found).toMatchObject({ ok: true, value: took });
  expect(assembledFor(opened, search(target.name))).toMatchObject({ ok: true, value: undefined });
});
