import { describe, expect, it } from "vitest";
import {
  domainMap,
  findFlow,
  formatSet,
  type IntegerMap,
  isEqual,
  parseMap,
  rangeMap,
  unwrap,
  wrap,
} from "./index.ts";

function map(text: string): IntegerMap {
  const result = parseMap(text);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

describe("dataflow between accesses", () => {
  const order = map("{ T[i] -> [0, i]; K[] -> [0, 4]; S[] -> [1, 0] }");

  function check(found: IntegerMap, expected: string): void {
    expect(isEqual(found, map(expected)), formatSet(found)).toBe("yes");
  }

  function flow(parts: { must?: string; may?: string; kill?: string }) {
    const found = findFlow({
      sink: map("{ S[] -> a[] }"),
      order,
      ...(parts.must && { mustSource: map(parts.must) }),
      ...(parts.may && { maySource: map(parts.may) }),
      ...(parts.kill && { kill: map(parts.kill) }),
    });
    if (found.kind === "unknown") throw new Error(found.reason);
    return found.value;
  }

  it("takes the last certain source", () => {
    const found = flow({ must: "{ T[i] -> a[] : 0 <= i < 10 }" });
    check(found.mustDependence, "{ T[9] -> [S[] -> a[]] }");
    check(found.mayDependence, "{ T[9] -> [S[] -> a[]] }");
    check(found.mayNoSource, "{ }");
  });

  it("keeps possible sources behind it, and kills", () => {
    const some = flow({
      must: "{ T[i] -> a[] : 0 <= i < 10 and i mod 2 = 0 }",
      may: "{ T[i] -> a[] : 0 <= i < 10 and i mod 2 = 1 }",
    });
    check(some.mustDependence, "{ }");
    check(some.mayDependence, "{ T[i] -> [S[] -> a[]] : 8 <= i <= 9 }");
    const killed = flow({ may: "{ T[i] -> a[] : 0 <= i < 10 }", kill: "{ K[] -> a[] }" });
    check(killed.mayDependence, "{ T[i] -> [S[] -> a[]] : 4 <= i <= 9 }");
    check(killed.mayNoSource, "{ }");
    check(flow({}).mustNoSource, "{ S[] -> a[] }");
  });
});

describe("wrapped pairs", () => {
  it("unwrap and project to their halves", () => {
    const access = map("[N] -> { S[i] -> A[2i + 1] : 0 <= i < N }");
    expect(isEqual(unwrap(wrap(access)), access)).toBe("yes");
    const first = map("[N] -> { [S[i] -> A[j]] -> S[i] : j = 2i + 1 and 0 <= i < N }");
    const second = map("[N] -> { [S[i] -> A[j]] -> A[j] : j = 2i + 1 and 0 <= i < N }");
    expect(isEqual(domainMap(access), first)).toBe("yes");
    expect(isEqual(rangeMap(access), second)).toBe("yes");
  });
});
