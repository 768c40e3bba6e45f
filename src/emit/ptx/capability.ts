/** Which features of an architecture an intrinsic's `needs` stands for. */
import type { GpuFeature } from "../../target/machine.ts";
import { gpuFeatures } from "../../target/machine.ts";

const named: Readonly<Record<string, readonly GpuFeature[]>> = { "bulk.tile": ["tma"] };

/** `wgmma.bf16` needs wgmma and bf16; f16 comes with the instruction. */
export function featuresOf(needs: string): readonly GpuFeature[] {
  const known = named[needs];
  if (known) return known;
  const whole = gpuFeatures.find((f) => f === needs);
  if (whole) return [whole];
  const parts = needs.split(".");
  return parts.filter((p): p is GpuFeature => (gpuFeatures as readonly string[]).includes(p));
}
