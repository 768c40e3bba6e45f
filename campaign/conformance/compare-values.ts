/**
 * Compares an output with the suite's, at the suite's own tolerances (onnx.backend.test.loader:
 * relative 1e-3, absolute 1e-7, the same for all cases): floats within them, integers, bools and
 * strings too (an integer that differs by one passes only if it is large, as numpy's allclose has it),
 * NaN equals NaN, types and shapes are the same.
 */
import type { HostValue } from "../../src/frontend/onnx/host-value.ts";
import { isTensor } from "../../src/frontend/onnx/host-value.ts";
import { type RefTensor, type Tensor, toRef } from "../../src/semantics/tensor.ts";

const relative = 1e-3;
const absolute = 1e-7;

/** What differs, or undefined. */
export function differenceOf(found: HostValue, expected: HostValue): string | undefined {
  const [a, b] = [describe(found), describe(expected)];
  if (a !== b) return `is ${a}, expected ${b}`;
  if (isTensor(found) && isTensor(expected)) return tensorDifference(found, expected);
  if (isTensor(found) || isTensor(expected)) return undefined;
  if (found.kind === "strings" && expected.kind === "strings") {
    const at = expected.elements.findIndex((e, i) => e !== found.elements[i]);
    if (at < 0) return undefined;
    return `element ${at} is ${found.elements[at]}, expected ${expected.elements[at]}`;
  }
  if (found.kind !== "sequence" || expected.kind !== "sequence") return undefined;
  for (const [i, element] of expected.elements.entries()) {
    const inner = differenceOf(found.elements[i]!, element);
    if (inner !== undefined) return `element ${i} ${inner}`;
  }
  return undefined;
}

function describe(value: HostValue): string {
  if (isTensor(value)) return `${value.dtype}[${value.shape}]`;
  if (value.kind === "strings") return `string[${value.shape}]`;
  return value.kind === "none" ? "none" : `sequence of ${value.elements.length}`;
}

function tensorDifference(found: Tensor, expected: Tensor): string | undefined {
  const [a, b] = [toRef(found), toRef(expected)];
  for (let i = 0; i < b.data.length; i++) {
    if (!close(a, b, i)) return `element ${i} is ${a.data[i]}, expected ${b.data[i]}`;
  }
  return undefined;
}

function close(a: RefTensor, b: RefTensor, i: number): boolean {
  if (a.data[i] === b.data[i]) return true;
  const [x, y] = [Number(a.data[i]), Number(b.data[i])];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) && Number.isNaN(y);
  if (!Number.isFinite(x) || !Number.isFinite(y)) return x === y;
  return Math.abs(x - y) <= absolute + relative * Math.abs(y);
}
