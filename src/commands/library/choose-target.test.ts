import { describe, expect, it } from "vitest";
import { runnableTargets } from "../../runtime/create-session.ts";
import { diagnostic, fail, ok } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { chooseTarget, chooseTargetHere } from "./choose-target.ts";

const here = runnableTargets().names;
const portable = here.find((name) => targets.get(name)!.emitter === "wasm")!;

/** A machine of which some machine code asks too much. */
const older = { names: ["x64-avx2", portable], reasons: [] };

function chosen(targetNames: readonly string[], wanted: string): string {
  const found = chooseTargetHere({ targetNames }, wanted);
  return found.ok ? found.value.name : found.diagnostics[0]!.code;
}

describe("the program of an artifact", () => {
  it.each(["auto", "cpu"])("is the best that runs here, whatever their order: %s", (wanted) => {
    expect(chosen([portable, ...here], wanted)).toBe(here[0]);
    expect(chosen([...here].reverse(), wanted)).toBe(here[0]);
  });

  it("is WebAssembly where it has no other, without a word", () => {
    expect(chooseTargetHere({ targetNames: [portable] }, "auto")).toMatchObject({
      ok: true,
      value: { name: portable },
      warnings: [],
    });
  });

  it.each(["auto", "cpu"])(
    "is WebAssembly where its machine code does not run, and that is said: %s",
    (wanted) => {
      const targetNames = ["x64-avx512", portable];
      expect(chooseTarget({ targetNames }, wanted, older)).toMatchObject({
        ok: true,
        value: { name: portable },
        warnings: [{ code: "RUN040", severity: "warning" }],
      });
      expect(chooseTarget({ targetNames }, portable, older)).toMatchObject({ warnings: [] });
    },
  );

  it.each(["auto", "cpu"])(
    "is WebAssembly where machine code is forbidden, with the reason: %s",
    (wanted) => {
      const forbids = diagnostic("RUN052", "this host forbids memory that is executable");
      const runnable = { names: [portable], reasons: [forbids] };
      const names = ["x64-avx2", portable];
      expect(chooseTarget({ targetNames: names }, wanted, runnable)).toMatchObject({
        ok: true,
        value: { name: portable },
        warnings: [{ code: "RUN052", severity: "warning" }],
      });
      expect(chooseTarget({ targetNames: names }, portable, runnable)).toMatchObject({
        warnings: [],
      });
    },
  );

  it("says that there is no machine code to him who asks for it alone", () => {
    const runnable = { names: ["x64-avx2", portable], reasons: [] };
    const found = (wanted: string) => chooseTarget({ targetNames: [portable] }, wanted, runnable);
    expect(found("cpu")).toMatchObject({ warnings: [{ code: "RUN040" }] });
    expect(found("auto")).toMatchObject({ warnings: [] });
  });

  const cpu = { names: [portable], reasons: [] };
  const device = { device: "a card", targets: ["h200", "h100"] };

  it("is the GPU's where the artifact was made for the GPU that is here", () => {
    const here = { ...cpu, gpu: ok(device) };
    for (const name of ["h200", "h100"]) {
      const found = chooseTarget({ targetNames: [portable, name] }, "auto", here);
      expect(found).toMatchObject({ ok: true, value: { name }, warnings: [] });
    }
    const asked = chooseTarget({ targetNames: [portable, "h200"] }, portable, here);
    expect(asked).toMatchObject({ ok: true, value: { name: portable }, warnings: [] });
  });

  it("is WebAssembly where it was made for a GPU that is not here, and that is said", () => {
    const absent = fail(diagnostic("CUD001", "no CUDA driver is installed"));
    const made = { targetNames: ["h200", portable] };
    expect(chooseTarget(made, "auto", { ...cpu, gpu: absent })).toMatchObject({
      ok: true,
      value: { name: portable },
      warnings: [{ code: "CUD001", severity: "warning", help: expect.stringContaining(portable) }],
    });
    const another = { ...cpu, gpu: ok({ device: "an old card", targets: ["a100-80gb"] }) };
    expect(chooseTarget(made, "auto", another)).toMatchObject({
      ok: true,
      value: { name: portable },
      warnings: [{ code: "RUN040", message: expect.stringContaining("an old card") }],
    });
    expect(chooseTarget({ targetNames: ["h200"] }, "auto", { ...cpu, gpu: absent })).toMatchObject({
      ok: false,
      diagnostics: [{ code: "CUD001" }],
    });
  });

  it("is refused where none runs (CLI002)", () => {
    expect(chosen(["another"], "auto")).toBe("CLI002");
    expect(chosen([portable], "another")).toBe("CLI002");
  });
});
