import { expect, it } from "vitest";
import { contain, containLater, ok, reject } from "./diagnostic.ts";

const refused = { ok: false, diagnostics: [{ code: "RUN030", message: "gone" }] };

it("diagnostics that are thrown become those of the answer; bugs pass", async () => {
  expect(contain(() => ok(reject("RUN030", "gone")))).toMatchObject(refused);
  const later = containLater(async () => {
    await Promise.resolve();
    return ok(reject("RUN030", "gone"));
  });
  expect(await later).toMatchObject(refused);
  expect(contain(() => ok(3))).toEqual(ok(3));
  const bug = (): never => {
    throw new TypeError("a bug");
  };
  expect(() => contain(bug)).toThrow(TypeError);
  await expect(containLater(async () => bug())).rejects.toThrow(TypeError);
});
