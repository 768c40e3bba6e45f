/** Measures, fits, and says what improved on shapes that the fit had not seen. */
import { ok } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { type CalibrateOptions, type CalibrationReport, calibrate } from "../library/calibrate.ts";
import { printTable } from "./table.ts";

type CalibrateArgs = { readonly [K in keyof CalibrateOptions]: CalibrateOptions[K] | undefined };

export const calibrateAction: Action<CalibrateArgs> = async (args, context) => {
  const given = Object.entries(args).filter(([, value]) => value !== undefined);
  const found = await calibrate(Object.fromEntries(given) as CalibrateOptions, context);
  if (!found.ok) return found;
  const report = found.value;
  return ok({ data: { ...report }, text: describe(report), target: report.target }, found.warnings);
};

function describe(report: CalibrationReport): string {
  const { heldOut, samples, left, moved, trust, sigma } = report;
  const without = Object.entries(left).map(([why, n]) => `, ${n} ${why}`);
  return [
    `${report.file}: ${samples} samples of target ${report.target}${without.join("")}`,
    `machine: ${report.machine}`,
    "",
    printTable(
      ["held out", "samples", "rho before", "after", "error before", "after"],
      [
        ...heldOut.workloads.map((w) => [w.workload, String(w.n), ...numbersOf(w)]),
        ["mean", String(samples), ...numbersOf(heldOut)],
      ],
    ),
    "",
    ...moved.map((m) => `${m.figure} ${m.from.toPrecision(3)} -> ${m.to.toPrecision(3)}`),
    moved.length === 0 && trust === 0
      ? "kept the first figures: nothing did better on shapes that it had not seen"
      : `residual trees believed by ${trust}; spread of times around prices ${sigma.toFixed(3)}`,
  ].join("\n");
}

function numbersOf(of: Omit<CalibrationReport["heldOut"], "workloads">): readonly string[] {
  const factor = (error: number): string => `x${Math.exp(error).toFixed(2)}`;
  return [of.before.toFixed(3), of.after.toFixed(3), factor(of.errorBefore), factor(of.errorAfter)];
}
