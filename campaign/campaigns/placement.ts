/**
 * Placements against judges of their own: on graphs of up to five tasks the makespan is the best of all
 * placements and orders, on up to seven HiGHS agrees with it, and on graphs of up to 80 tasks the event
 * simulator plays the same makespan, the bound lies below it and no single device beats it. An answer
 * that nothing fits is compared with trying everything.
 */
import { searchExactly } from "../../src/plan/place/exact.ts";
import { defaultBudget, type PlacePlan, place } from "../../src/plan/place/place.ts";
import type { PlaceProblem } from "../../src/plan/place/problem.ts";
import { memoryUse, timePlacement } from "../../src/plan/place/schedule.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { bestMakespan, queuesOf, randomProblem, simulate } from "../place-judges.ts";

interface Highs {
  solve(
    problem: string,
    options: Readonly<Record<string, unknown>>,
  ): {
    readonly Status: string;
    readonly ObjectiveValue: number;
  };
}

export const placement: Campaign = {
  name: "placement",
  summary: "placements against brute force, HiGHS and an event simulator",
  targets: ["any"],
  defaultCount: 400,
  open: async () => {
    const { createRequire } = await import("node:module");
    const load = createRequire(import.meta.url)("highs") as () => Promise<Highs>;
    const highs = await load();
    return (seed) => {
      const kind = seed % 4;
      const rng = new Rng(seed);
      if (kind < 2) return judgeSmall(randomProblem(rng, 5, 3));
      if (kind === 2) return judgeByHighs(randomProblem(rng, 7, 3), highs);
      return judgeLarge(randomProblem(rng, 80, 5));
    };
  },
};

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}

/** What must hold of every plan; undefined when it does. */
function wrong(problem: PlaceProblem, plan: PlacePlan): string | undefined {
  const queues = queuesOf(problem.devices.length, plan.deviceOf, plan.order);
  const played = simulate(problem, plan.deviceOf, queues);
  if (played !== plan.makespanNs) return `makespan ${plan.makespanNs}, played ${played}`;
  if (plan.boundNs > plan.makespanNs) return `bound ${plan.boundNs} above ${plan.makespanNs}`;
  const alone = Math.min(...plan.aloneNs);
  if (plan.makespanNs > alone) return `makespan ${plan.makespanNs}, one device alone ${alone}`;
  const over = memoryUse(problem, plan.deviceOf).some(
    (m, d) => m > problem.devices[d]!.memoryBytes,
  );
  return over ? "more memory than there is" : undefined;
}

function judgeSmall(problem: PlaceProblem): Finding {
  const best = bestMakespan(problem);
  const plan = place(problem);
  if (!plan.ok) {
    const code = plan.diagnostics[0]!.code;
    if (best === Infinity && code === "PLN006") return passed;
    return failed(`${code}, and ${best} is possible`);
  }
  const reason = wrong(problem, plan.value);
  if (reason) return failed(reason);
  if (!plan.value.optimal) return failed("not proved");
  if (plan.value.makespanNs !== best) return failed(`${plan.value.makespanNs}, best is ${best}`);
  // The search alone, without the heuristic's answer to start from.
  const search = searchExactly(problem, Infinity, defaultBudget.nodes);
  const found = search.placement && timePlacement(problem, search.placement).makespanNs;
  if (found !== best) return failed(`the search alone finds ${found}, best is ${best}`);
  // The heuristic and its bound alone, which large graphs get.
  const loose = place(problem, { ...defaultBudget, exactTasks: 0 });
  if (!loose.ok) return passed;
  const doubt = wrong(problem, loose.value);
  if (doubt) return failed(`heuristic: ${doubt}`);
  return loose.value.boundNs > best * (1 + 1e-9)
    ? failed(`bound ${loose.value.boundNs} above the best ${best}`)
    : passed;
}

function judgeLarge(problem: PlaceProblem): Finding {
  const plan = place(problem, { ...defaultBudget, timings: 2000 });
  if (!plan.ok) {
    const expected = plan.diagnostics[0]!.code === "PLN006";
    return expected ? passed : failed(plan.diagnostics[0]!.message);
  }
  const reason = wrong(problem, plan.value);
  return reason ? failed(reason) : passed;
}

function judgeByHighs(problem: PlaceProblem, highs: Highs): Finding {
  const plan = place(problem);
  const answer = highs.solve(toLinearProgram(problem), { mip_rel_gap: 0, time_limit: 8 });
  if (answer.Status === "Time limit reached") {
    return { kind: "skipped", reason: "HiGHS ran out of time" };
  }
  if (!plan.ok) {
    return answer.Status === "Infeasible" ? passed : failed(`refused, HiGHS: ${answer.Status}`);
  }
  const reason = wrong(problem, plan.value);
  if (reason) return failed(reason);
  const { makespanNs, optimal } = plan.value;
  const best = answer.ObjectiveValue;
  if (optimal && Math.abs(makespanNs - best) > 1e-4 * (1 + best)) {
    return failed(`${makespanNs} is called the best, HiGHS has ${best}`);
  }
  return plan.value.boundNs > best + 1e-4 * (1 + best) ? failed("bound above HiGHS") : passed;
}

/** CPLEX LP text: x_t_d where a task is, y_t_u whether t is before u on one device, s_t its start. */
function toLinearProgram(problem: PlaceProblem): string {
  const { tasks, devices, transfers } = problem;
  const horizon = 2000;
  const rows: string[] = [];
  const duration = (t: number): string =>
    devices
      .map((_, d) => [tasks[t]!.timeNs[d]!, d] as const)
      .filter(([time]) => time !== Infinity)
      .map(([time, d]) => `+ ${time} x_${t}_${d}`)
      .join(" ");
  const minus = (text: string): string => text.replaceAll("+ ", "- ");
  tasks.forEach((task, t) => {
    rows.push(`${devices.map((_, d) => `+ x_${t}_${d}`).join(" ")} = 1`);
    rows.push(`m - s_${t} ${minus(duration(t))} >= 0`);
    for (const [d, time] of task.timeNs.entries())
      if (time === Infinity) rows.push(`x_${t}_${d} = 0`);
    for (const { from, bytes } of task.inputs) {
      devices.forEach((_, a) => {
        devices.forEach((__, b) => {
          const way = transfers[a]![b]!;
          const delay = a === b ? 0 : way.latencyNs + bytes / way.bytesPerNs;
          const gap = `s_${t} - s_${from} ${minus(duration(from))}`;
          rows.push(
            `${gap} - ${horizon} x_${from}_${a} - ${horizon} x_${t}_${b} >= ${delay - 2 * horizon}`,
          );
        });
      });
    }
    for (let u = 0; u < t; u++) {
      devices.forEach((_, d) => {
        const together = `- ${horizon} x_${t}_${d} - ${horizon} x_${u}_${d}`;
        rows.push(
          `s_${t} - s_${u} ${minus(duration(u))} ${together} - ${horizon} y_${u}_${t} >= ${-3 * horizon}`,
          `s_${u} - s_${t} ${minus(duration(t))} ${together} + ${horizon} y_${u}_${t} >= ${-2 * horizon}`,
        );
      });
    }
  });
  devices.forEach((device, d) => {
    const used = tasks.map((task, t) => `+ ${task.memoryBytes} x_${t}_${d}`).join(" ");
    rows.push(`${used} <= ${device.memoryBytes}`);
  });
  const binaries = tasks.flatMap((_, t) => [
    ...devices.map((__, d) => `x_${t}_${d}`),
    ...Array.from({ length: t }, (__, u) => `y_${u}_${t}`),
  ]);
  const constraints = rows.map((row, i) => ` c${i}: ${row}`).join("\n");
  return `Minimize\n obj: m\nSubject To\n${constraints}\nBinary\n ${binaries.join("\n ")}\nEnd\n`;
}
