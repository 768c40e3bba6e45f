/** How the schedules of a compiled model were chosen, as artifacts and reports have it. */
import type { SearchReport } from "../../artifact/artifact.ts";
import { codeWorkOf } from "../../code-price.ts";
import type { CompiledModel } from "../../compile.ts";
import { blockBound } from "../../cost/block-bound.ts";
import { codeWork } from "../../cost/mix-price.ts";
import { priceParts } from "../../cost/price-parts.ts";
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { targets } from "../../target/index.ts";
import type { CalibrationOrigin } from "./machine-calibration.ts";

export function searchReport(
  target: string,
  compiled: CompiledModel,
  calibration?: CalibrationOrigin,
): SearchReport {
  const { regions, certificate } = compiled;
  const limits = targets.get(target)?.blocks;
  const { solver, reason, objectivePs, boundPs, gap, trace, ...figures } = certificate;
  return {
    target,
    solver,
    reason,
    objectivePs,
    ...(!limits && { threads: compiled.threads }),
    boundPs,
    gap,
    ...figures,
    trace: trace.map((point) => ({ ...point })),
    ...(calibration && { calibration }),
    passes: passesOf(compiled),
    regions: regions.map(({ name, price, funnel, scheduled }) => {
      const single = {
        generated: 1,
        legal: 1,
        kept: 1,
        roofline: 0,
        symmetry: 0,
        occupancy: 0,
        code: 0,
      };
      const { generated, legal, roofline, symmetry, occupancy, code, kept } = funnel ?? single;
      const { estimateNs, boundNs } = price;
      const removed = funnel ? funnel.removed.map((r) => ({ ...r })) : [];
      const phases = { roofline, symmetry, occupancy, code };
      const parts = partsOf(scheduled, estimateNs, compiled);
      const boundBy = limits && blockBound(scheduled.region, limits).by;
      const counts = { generated, removed, legal, ...phases, kept };
      const priced = { name, estimateNs, boundNs, ...(boundBy && { boundBy }) };
      return { ...priced, ...counts, ...(parts && { parts }) };
    }),
  };
}

/** With what they move and take. */
function passesOf({ passes, regions }: CompiledModel): SearchReport["passes"] {
  const described = new Map(regions.map((r) => [r.name, r]));
  return passes.map(({ region, kind, why }) => {
    const { bytes, price } = described.get(region)!;
    // In the order of the schema, so that an artifact that is read is written as it was.
    const own = why.map(({ side, tensor, regions: of, kind, reason, prices }) => ({
      ...(side && { side }),
      ...(tensor !== undefined && { tensor }),
      ...(of && { regions: [...of] }),
      kind,
      reason,
      ...(prices && { prices: { fusedNs: prices.fusedNs, apartNs: prices.apartNs } }),
    }));
    return { region, kind, bytes, estimateNs: price.estimateNs, why: own };
  });
}

/** The price of a region's code by cause; what trees or the roofline add is shared by all. */
function partsOf(
  scheduled: ScheduledRegion,
  estimateNs: number,
  { plan, prices }: CompiledModel,
): Readonly<Record<string, number>> | undefined {
  const target = targets.get(plan.program.target);
  if (!target || target.blocks) return undefined;
  const work = plan.program.kernels.some((k) => k.region === scheduled.region.name)
    ? codeWorkOf(scheduled, target)
    : codeWork(scheduled, [], target);
  if (!work) return undefined;
  const parts = priceParts(work, prices.core);
  const sum = Object.values(parts).reduce((a, b) => a + b, 0);
  if (sum === 0) return undefined;
  const scale = estimateNs / sum;
  return Object.fromEntries(Object.entries(parts).map(([cause, ns]) => [cause, ns * scale]));
}

/** One line on what the search proves. */
export function describeCertificate(search: SearchReport): string {
  const { variables, transitions, legal, searched, objectivePs, boundPs, gap, threads } = search;
  const ms = (ps: number): string => (ps / 1e9).toFixed(3);
  const proof = gap === 0 ? "no choice is cheaper" : `no choice costs less than ${ms(boundPs)} ms`;
  const on =
    threads === undefined ? "" : threads === 1 ? " on one thread" : ` on ${threads} threads`;
  return (
    `chosen by ${search.solver}: ${ms(objectivePs)} ms as priced${on}, gap ${(100 * gap).toFixed(3)} % ` +
    `(${proof}); ${variables} regions, ${transitions} transitions, ${legal} legal states, ` +
    `${searched} searched`
  );
}

/** One line on where the prices come from. */
export function describePrices({ calibration }: SearchReport): string {
  if (!calibration) return "priced from the target's data; nothing was measured here";
  const { file, hash, samples, heldOut } = calibration;
  const [before, after] = [heldOut.before, heldOut.after].map((rho) => rho.toFixed(3));
  return (
    `prices calibrated on ${samples} samples (${file}, ${hash}): ` +
    `rank correlation on shapes left out ${before} -> ${after}`
  );
}
