import { expect, test } from "vitest";
import type { Kernel, Role } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { layOutThreads } from "./thread-layout.ts";

function role(name: string, copies: number, threads: number, body: readonly Statement[]): Role {
  return { name, copies, threads, body };
}

function layout(roles: readonly Role[]) {
  const grid = { unit: "blocks", axes: [], clusterSize: 1, resident: false } as const;
  const kernel: Kernel = { name: "k", grid, buffers: [], counters: [], roles, region: "" };
  return layOutThreads(kernel);
}

const multiply: Statement = {
  kind: "intrinsic",
  intrinsic: "wgmma.m64n8k16.f32.bf16",
  operands: [],
  completion: { kind: "group", group: "g" },
};
const meet = (scope: "copy" | "role" | "instance"): Statement => ({ kind: "barrier", scope });

test("roles begin at warps, those of warpgroups at every fourth", () => {
  const { roles, threads, meeting } = layout([
    role("producer", 1, 1, []),
    role("consumer", 2, 128, [multiply]),
  ]);
  expect(roles.map((r) => [r.firstThread, r.copyThreads])).toEqual([
    [0, 32],
    [128, 128],
  ]);
  expect([threads, meeting]).toEqual([384, 32 + 256]);
});

test("barriers are numbered as far as they are used", () => {
  const alone = layout([role("all", 1, 64, [meet("copy"), meet("role"), meet("instance")])]);
  expect(alone.barriers).toBe(1);
  const many = layout([
    role("a", 1, 64, [meet("role")]),
    role("b", 3, 33, [meet("copy"), meet("role")]),
  ]);
  expect(many.barriers).toBe(1 + 1 + 1 + 3);
  expect(many.roles[1]!.copyThreads).toBe(64);
  expect(many.threads).toBe(64 + 3 * 64);
});
