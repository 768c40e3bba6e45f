import { expect, it } from "vitest";
import { emitProbe, probeBytes } from "./probe-code.ts";

it.each(["linux", "windows", "other"] as const)(
  "the stored probe is the emitted one on %s",
  (system) => {
    expect(probeBytes(system)).toEqual(emitProbe(system));
  },
);
