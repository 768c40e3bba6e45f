import { describe, expect, test } from "vitest";
import { Rng } from "../../src/support/rng.ts";
import { findModel } from "../models/table.ts";
import { ortNodeRuntime } from "../sessions/ort-node.ts";
import { PeerLacksKernels } from "../sessions/peer-kernels.ts";
import { float32Tensor, type Runtime, type Session } from "../sessions/session.ts";
import { modelCases, sessionContest } from "./model-cases.ts";

describe("model contests", () => {
  const row = findModel("ppocr-v2-cls")!;
  const modelCase = row.cases[0]!;
  const rounding = { depth: 54, longestSum: 200 };

  test("a runtime agrees with itself on a real model", async () => {
    const runtime = ortNodeRuntime(1);
    let opened = 0;
    let released = 0;
    const counting: Runtime = {
      ...runtime,
      open: async (...args) => {
        opened++;
        const session = await runtime.open(...args);
        return {
          ...session,
          release: async () => {
            released++;
            await session.release();
          },
        };
      },
    };
    const { cases, close } = modelCases([counting, runtime], [row]);
    expect(cases.map((c) => c.case)).toEqual([
      "ocr-angle/ppocr-v2-cls/1x3x48x192",
      "ocr-angle/ppocr-v2-cls/6x3x48x192",
    ]);
    const contest = await cases[0]!.open();
    contest.refresh(new Rng(1));
    expect(await contest.check()).toBe(undefined);
    await contest.close();
    const next = await cases[1]!.open();
    next.refresh(new Rng(1));
    expect(await next.check()).toBe(undefined);
    await next.close();
    expect([opened, released]).toEqual([1, 0]);
    await close();
    expect([opened, released]).toEqual([1, 1]);
  });

  test("a model that the peer has no kernels for is skipped before ours is compiled", async () => {
    const refusing = (message: string): Runtime => ({
      ...ortNodeRuntime(1),
      name: "peer",
      open: () => Promise.reject(new Error(message)),
    });
    const ours: Runtime = { ...ortNodeRuntime(1), open: () => expect.unreachable() };
    const lacking = refusing("ERROR_CODE: 9, Could not find an implementation for Sub(14)");
    const [skipped] = modelCases([ours, lacking], [row]).cases;
    await expect(skipped!.open()).rejects.toThrow(PeerLacksKernels);
    await expect(skipped!.open()).rejects.toThrow(
      "peer has no kernels for the types of ppocr-v2-cls",
    );
    const [broken] = modelCases([ours, refusing("out of memory")], [row]).cases;
    await expect(broken!.open()).rejects.toThrow("out of memory");
  });

  test("outputs apart by more than rounding are reported, on the inputs of both", async () => {
    const seen: unknown[] = [];
    const answering = (value: number): Session => ({
      inputs: [],
      outputs: [],
      run: async (feeds) => {
        seen.push(feeds);
        return { y: float32Tensor([1], Float32Array.of(value)) };
      },
      release: async () => {},
    });
    const contest = sessionContest(rounding, modelCase, [answering(0.5), answering(0.51)]);
    contest.refresh(new Rng(1));
    expect(await contest.check()).toMatch(/outputs differ by 1.00e-2/);
    expect(seen[0]).toBe(seen[1]);
    contest.refresh(new Rng(2));
    await contest.ours();
    expect(seen[2]).not.toEqual(seen[0]);
  });
});
