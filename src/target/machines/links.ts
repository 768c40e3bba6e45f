/** Buses that many machines share: PCI Express by generation and lanes, from its own rates. */
import { perDevice } from "../figure.ts";
import type { Link } from "../machine.ts";

/** Gigatransfers a second and lane; 128 of 130 bits are data (PCI Express Base Specification). */
const generations = { "3.0": 8, "4.0": 16, "5.0": 32 } as const;

export function pcie(generation: keyof typeof generations, lanes: number): Link {
  const rate = generations[generation];
  const bytesPerNs = Math.round(((rate * lanes * 128) / 130 / 8) * 100) / 100;
  const source = `PCI Express ${generation}: ${rate} GT/s x ${lanes} lanes x 128/130`;
  return {
    kind: "pcie",
    generation: `${generation} x${lanes}`,
    bytesPerNsEachWay: perDevice(bytesPerNs, source),
  };
}
