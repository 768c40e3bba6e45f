/** Which features of an architecture an intrinsic's `needs` stands for. */
import type { GpuFeature } from "../../target/machine.ts";
import { gpuFeatures } from "../../target/machine.ts";

/** Shuffles are part of every PTX. */
const named: Readonly<Record<string, readonly GpuFeature[]>> = {
  "bulk.tile": ["tma"],
  shuffle: [],
};

/** `wgmma.bf16` needs wgmma and bf16; f16 comes with the instruction. Undefined: nothing PTX has. */
export function featuresOf(needs: string): readonly GpuFeature[] | undefined {
  const known = named[needs];
  if (known) return known;
  const whole = gpuFeatures.find((f) => f === needs);
  if (whole) return [whole];
  const parts = needs.split(".");
  const found = gpuFeatures.filter((f) => parts.includes(f));
  return found.length > 0 ? found : undefined;
}
