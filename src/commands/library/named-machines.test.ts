import { describe, expect, it } from "vitest";
import { nativeTargets } from "../../runtime/create-session.ts";
import { load } from "./load.ts";
import { sampleModel } from "./sample-model.test-support.ts";
import { tensor } from "./tensor.ts";

const shapes = { M: "1..8" };
const named = nativeTargets().filter((name) => !name.startsWith("x64-"));

async function resultOn(target: string): Promise<ArrayLike<number | bigint>> {
  const x = tensor(
    "f32",
    [5, 24],
    Float32Array.from({ length: 5 * 24 }, (_, i) => Math.sin(i)),
  );
  const model = await load(sampleModel(), { shapes, target, threads: 2 });
  try {
    return model.run({ "x:0": x })["y:0"]!.data;
  } finally {
    await model.dispose();
  }
}

describe.skipIf(named.length === 0).each(named)("programs for %s", (name) => {
  it("run where their features are, and give what WebAssembly gives", async () => {
    const [found, wanted] = [await resultOn(name), await resultOn("wasm")];
    expect(found.length).toBe(wanted.length);
    for (let i = 0; i < found.length; i++) {
      expect(Number(found[i])).toBeCloseTo(Number(wanted[i]), 4);
    }
  });
});
