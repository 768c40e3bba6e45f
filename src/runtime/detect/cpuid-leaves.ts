/**
 * The CPUID leaves that detection reads, as numbers that can be kept in a file: `<leaf>.<subleaf>` in
 * hexadecimal to four registers (Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E).
 */
import { openNativeSystem } from "../ffi/koffi-system.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { type Cpuid, type Leaf, withCpuid } from "../native/cpuid.ts";

export interface CpuidLeaves {
  readonly leaves: Readonly<Record<string, Leaf>>;
  /** Low half of XCR0. */
  readonly savedStates: number;
}

export type CpuidAnswer =
  | ({ readonly kind: "leaves" } & CpuidLeaves)
  | { readonly kind: "absent"; readonly why: string };

export function leafKey(leaf: number, subleaf = 0): string {
  return `${leaf.toString(16)}.${subleaf.toString(16)}`;
}

const plainLeaves = [1, 0xd, 0x80000001, 0x80000002, 0x80000003, 0x80000004, 0x8000001e];
/** Leaves with subleaves: how many are read at most. */
const tables: readonly (readonly [leaf: number, subleaves: number])[] = [
  [4, 8],
  [7, 2],
  [0xb, 4],
  [0x8000001d, 8],
];
const extended = 0x80000000;

export function queryCpuid(
  system:
    | { readonly ok: true; readonly value: NativeSystem }
    | ReturnType<typeof openNativeSystem> = openNativeSystem(),
): CpuidAnswer {
  const read = system.ok ? withCpuid(system.value, readLeaves) : system;
  if (!read.ok) return { kind: "absent", why: read.diagnostics[0]!.message };
  return { kind: "leaves", ...read.value };
}

function readLeaves({ ask, savedStates }: Cpuid): CpuidLeaves {
  const leaves: Record<string, Leaf> = {
    [leafKey(0)]: ask(0),
    [leafKey(extended)]: ask(extended),
  };
  // A leaf above the highest answers with another one's values.
  const known = (leaf: number): boolean =>
    leaf <= leaves[leafKey(leaf < extended ? 0 : extended)]![0];
  for (const leaf of plainLeaves) if (known(leaf)) leaves[leafKey(leaf)] = ask(leaf);
  for (const [leaf, subleaves] of tables) {
    for (let i = 0; known(leaf) && i < subleaves; i++) leaves[leafKey(leaf, i)] = ask(leaf, i);
  }
  return { leaves, savedStates };
}
