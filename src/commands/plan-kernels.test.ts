import { expect, it } from "vitest";
import { planKernelsAction } from "./actions/plan-kernels.ts";

const context = {
  now: () => 0,
  progress: () => {},
  interrupted: () => new AbortController().signal,
};
const gemm = {
  kind: "gemm",
  type: "bf16",
  batch: 1,
  rows: 4096,
  columns: 4096,
  depth: 4096,
} as const;

it("plans a kernel for one machine, with what it was chosen over, or for all", async () => {
  const one = await planKernelsAction({ ...gemm, target: ["h200"] }, context);
  if (!one.ok) throw new Error(one.diagnostics[0]!.message);
  expect(one.value.text).toMatch(/h200 .*128x256x64/);
  expect(one.value.text).toContain("instruction: wgmma.mma_async m64n256k16");
  expect(one.value.text).toMatch(/mma.sync, asynchronous copies/);
  const all = await planKernelsAction({ ...gemm, target: [] }, context);
  if (!all.ok) throw new Error(all.diagnostics[0]!.message);
  expect((all.value.data.choices as unknown[]).length).toBeGreaterThan(20);
});

it("asks for the extents that a class has, and refuses those that it has not", async () => {
  const { depth: _, ...shallow } = gemm;
  const codesOf = async (args: Parameters<typeof planKernelsAction>[0]) => {
    const answer = await planKernelsAction(args, context);
    return answer.ok ? [] : answer.diagnostics.map((d) => `${d.code} ${d.at}`);
  };
  const target = ["h200"];
  expect(await codesOf({ ...shallow, target })).toEqual(["PLN020 --depth"]);
  expect(await codesOf({ ...gemm, kind: "softmax", target })).toEqual(["PLN020 --depth"]);
  expect(await codesOf({ ...gemm, kind: "quantised-gemm", target })).toEqual([
    "PLN020 --weight-bits",
  ]);
  const attention = { kind: "attention-decode", type: "bf16", depth: 128, target } as const;
  expect(await codesOf(attention)).toEqual(["PLN020 --keys"]);
  expect(await codesOf({ ...attention, keys: 100, columns: 7 })).toEqual(["PLN020 --columns"]);
  expect(await codesOf({ ...attention, keys: 100 })).toEqual([]);
});

it("says which extent or machine it cannot use", async () => {
  expect(await planKernelsAction({ ...gemm, rows: -1, target: ["h200"] }, context)).toMatchObject({
    ok: false,
    diagnostics: [{ code: "PLN020", at: "rows" }],
  });
  expect((await planKernelsAction({ ...gemm, target: ["h900"] }, context)).ok).toBe(false);
});
