import { describe, expect, it } from "vitest";
import type { ProcessorSet, Processors } from "./ffi/processors.ts";
import { obeyingProcessors } from "./processors.test-support.ts";
import { ThreadPlaces } from "./thread-places.ts";

const list = (set: ProcessorSet): number[] =>
  [...set].flatMap((byte, i) =>
    [...Array(8).keys()].filter((b) => byte & (1 << b)).map((b) => 8 * i + b),
  );

class FakeProcessors implements Processors {
  here = 0;
  readonly log: string[] = [];
  readonly #allowed: readonly number[];

  constructor(allowed: readonly number[]) {
    this.#allowed = allowed;
  }

  current = (): number => this.here;

  allowed = (): ProcessorSet => {
    const set = new Uint8Array(16);
    for (const n of this.#allowed) set[n >> 3]! |= 1 << (n & 7);
    return set;
  };

  restrict = (thread: number, set: ProcessorSet): boolean => {
    this.log.push(`${thread}: ${list(set).join()}`);
    return true;
  };
}

describe("ThreadPlaces", () => {
  it("keeps threads off the caller's processor, and says so again only when it has moved", () => {
    const processors = new FakeProcessors([0, 1, 9, 12]);
    const places = new ThreadPlaces(processors);
    processors.here = 9;
    for (let run = 0; run < 3; run++) places.keepApart([71, 72]);
    expect(processors.log).toEqual(["71: 0,1,12", "72: 0,1,12"]);
    processors.here = 0;
    places.keepApart([71]);
    expect(processors.log.slice(2)).toEqual(["71: 1,9,12"]);
  });

  it("tells a thread that took the number of another one", () => {
    const processors = new FakeProcessors([0, 1]);
    const places = new ThreadPlaces(processors);
    places.keepApart([71]);
    places.forget(71);
    places.keepApart([71]);
    expect(processors.log).toEqual(["71: 1", "71: 1"]);
  });

  it("takes a thread's only processor from nobody", () => {
    const processors = new FakeProcessors([3]);
    processors.here = 3;
    new ThreadPlaces(processors).keepApart([71]);
    expect(processors.log).toEqual([]);
  });
});

describe.skipIf(!obeyingProcessors())("processors of this machine", () => {
  it("are told and set", () => {
    const processors = obeyingProcessors()!;
    const allowed = processors.allowed()!;
    expect(list(allowed)).toContain(processors.current());
    expect(processors.restrict(process.pid, new Uint8Array(allowed.length))).toBe(false);
  });
});
