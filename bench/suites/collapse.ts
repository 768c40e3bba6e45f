/**
 * What collapse finds in the compiler. Three kinds of rows:
 *
 *   certificate/MODEL   the schedule pass of a bench model: ours is the time of the thread that compiles (which
 *                       others that run do not add to), the peer two seconds; beside it processor time of the whole
 *                       process, with the engine's own threads, the gap that is proved, variables, states that were
 *                       legal and that were searched
 *   regret/FAMILY/SHAPE the choice without any measurement, timed in turns with schedules drawn uniformly from all
 *                       legal ones: ours is the choice, the peer the fastest of them (above 1: none was faster)
 *   greedy/MODEL/SHAPE  the whole model in turns with itself where every region chose its layout and schedule by
 *                       its own prices alone; `priced` is what the search expects of that
 *
 * The choice must pay for what it was not told; a draw of thousands is luckier than any single guess.
 */
import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import {
  type Family,
  familyShapes,
  makeWorkload,
} from "../../src/commands/library/calibration-workloads.ts";
import { type CompiledModel, compileModel } from "../../src/compile.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import type { Certificate } from "../../src/schedule/choice/choose-schedules.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { drawStates } from "../../src/schedule/states/draw-states.ts";
import { greedy } from "../../src/search/greedy.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { programOf, timePrograms } from "../correlation/sample-set.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import { type ModelCase, type ModelRow, modelTable } from "../models/table.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import { importOptions, unwrap } from "../sessions/import-hints.ts";
import { openCompiled } from "../sessions/wavetile.ts";
import { sessionContest } from "./model-cases.ts";
import type { ContestCase, ForeignCase, Suite } from "./suite.ts";

const seed = 1;
/** Schedules drawn for each region. */
const draws = 2000;
/** Programs that are in memory at once, each chunk beside the choice. */
const chunk = 100;
const timing = { rounds: 12, sampleNs: 150_000 };
const allowedNs = 2e9;

export const collapseSuite: Suite = {
  name: "collapse",
  summary: "certificates of bench models; regret of choices against random legal schedules",
  targets: ["wasm", "cpu", "x64-avx512", "x64-avx2"],
  peers: [],
  load: async ({ target: asked, threads }) => {
    setFlagsFromString("--no-liftoff");
    const name = asked === "cpu" ? (runnableTargets().names[0] ?? asked) : asked;
    const target = targets.get(name)!;
    const families = Object.keys(familyShapes) as Family[];
    const regions = families.flatMap((family) =>
      familyShapes[family].map((dims) => regretCase(family, dims, target)),
    );
    const wholes = modelTable.flatMap((row) =>
      row.cases.map((modelCase) => greedyCase({ row, modelCase, target, threads })),
    );
    const certificates = modelTable.map((row) => certificateCase(row, target));
    return {
      versions: { target: name },
      cases: [...certificates, ...regions, ...wholes],
      summarise,
    };
  },
};

function certificateCase(row: ModelRow, target: Target): ForeignCase {
  const name = `certificate/${row.name}`;
  const peerName = "two seconds";
  return {
    case: name,
    peerName,
    measure: async () => {
      const bytes = fetchModel(row);
      if (!bytes.ok) {
        const reason = bytes.diagnostics[0]!.message;
        return { case: name, peerName, kind: "unsupported", reason };
      }
      const model = unwrap(importOnnx(bytes.value, importOptions(hintsFor(row))));
      let [from, to] = [spent(), spent()];
      const onPass = (pass: string): void => {
        if (pass === "schedule") from = spent();
        if (pass === "lower") to = spent();
      };
      const made = compileModel(model, { target, onPass });
      if (!made.ok) {
        const reason = formatDiagnostic(made.diagnostics[0]!);
        return { case: name, peerName, kind: "unsupported", reason };
      }
      const took = { threadNs: to.threadNs - from.threadNs, cpuNs: to.cpuNs - from.cpuNs };
      const ratio = allowedNs / took.threadNs;
      const times = { ours: took.threadNs, peer: allowedNs, ratio, low: ratio, high: ratio, n: 1 };
      return { case: name, peerName, ...times, detail: describe(made.value.certificate, took) };
    },
  };
}

interface Spent {
  readonly threadNs: number;
  readonly cpuNs: number;
}

/** Time on processors, of the calling thread (of the process, where the system does not tell threads apart) and of all. */
function spent(): Spent {
  const cpuNs = process.cpuUsage().user * 1000;
  return { threadNs: threadNs() ?? cpuNs, cpuNs };
}

/** Linux: the first number of schedstat (kernel documentation, "Scheduler Statistics"). */
function threadNs(): number | undefined {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]);
  } catch {
    return undefined;
  }
}

function describe(
  { gap, variables, legal, searched, nodes }: Certificate,
  { threadNs, cpuNs }: Spent,
): SuiteSummary {
  return {
    seconds: threadNs / 1e9,
    "seconds of all threads": cpuNs / 1e9,
    gap,
    variables,
    legalPerVariable: legal / Math.max(1, variables),
    searchedPerVariable: searched / Math.max(1, variables),
    nodes,
  };
}

function regretCase(family: Family, dims: readonly number[], target: Target): ForeignCase {
  const workload = makeWorkload(family, dims);
  const name = `regret/${family}/${workload.shape}`;
  const peerName = `fastest of ${draws}`;
  return {
    case: name,
    peerName,
    measure: async (): Promise<BenchRow> => {
      const { program: parts, model } = workload;
      const chosen = unwrap(compileModel(model, { target, threads: 1 })).plan.program;
      const drawing = { count: draws, rng: new Rng(seed), parallel: false, inLanes: false };
      const drawn = parts.regions.map((region): readonly Schedule[] => {
        const states = drawStates(region, target, drawing).map((s) => s.schedule);
        const plain = { region: region.name, target: target.name, directives: [] };
        return states.length > 0 ? states : [plain];
      });
      const count = Math.max(...drawn.map((d) => d.length));
      let [ours, peer] = [Infinity, Infinity];
      for (let first = 0; first < count; first += chunk) {
        const size = Math.min(chunk, count - first);
        const programs = Array.from({ length: size }, (_, i) => {
          const schedules = drawn.map((d) => d[(first + i) % d.length]!);
          const program = programOf(parts, schedules, target);
          if (typeof program === "string") throw new Error(program);
          return program;
        });
        const [mine, ...others] = timePrograms([chosen, ...programs], timing);
        ours = Math.min(ours, mine!.ns);
        for (const { ns } of others) peer = Math.min(peer, ns);
      }
      const ratio = peer / ours;
      const detail = { regret: Math.max(0, ours / peer - 1), schedules: count };
      return { case: name, ours, peer, peerName, ratio, low: ratio, high: ratio, n: count, detail };
    },
  };
}

interface ModelAt {
  readonly row: ModelRow;
  readonly modelCase: ModelCase;
  readonly target: Target;
  readonly threads: number;
}

function greedyCase({ row, modelCase, target, threads }: ModelAt): ContestCase {
  const open: ContestCase["open"] = async () => {
    const bytes = unwrap(fetchModel(row));
    const imported = importOnnx(bytes, importOptions(hintsFor(row)));
    const both = [{}, { solver: greedy }].map((how) =>
      unwrap(compileModel(unwrap(imported), { target, ...how })),
    ) as [CompiledModel, CompiledModel];
    const [ours, peer] = both.map((c) => openCompiled(unwrap(imported), c, { target, threads }));
    const contest = sessionContest(unwrap(roundingOf(bytes)), modelCase, [ours!, peer!]);
    const [own, other] = both.map(countsOf);
    const beside = {
      priced: other!.pricedNs / own!.pricedNs,
      conversions: own!.conversions,
      "greedy conversions": other!.conversions,
    };
    return { ...contest, beside };
  };
  return { case: `greedy/${row.name}/${modelCase.name}`, peerName: "greedy", open };
}

interface ProgramCounts {
  /** One core, without what neighbours pay for each other. */
  readonly pricedNs: number;
  /** Regions that store a feature map in another layout. */
  readonly conversions: number;
}

function countsOf({ regions }: CompiledModel): ProgramCounts {
  const isConversion = (origin: string): boolean => origin.startsWith("layout of ");
  return {
    pricedNs: regions.reduce((ns, r) => ns + r.price.estimateNs, 0),
    conversions: regions.filter((r) => r.origins.some(isConversion)).length,
  };
}

function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const of = (name: string): readonly number[] =>
    rows.flatMap((row) => (row.detail?.[name] === undefined ? [] : [row.detail[name]]));
  const mean = (xs: readonly number[]): number =>
    xs.reduce((sum, x) => sum + x, 0) / Math.max(1, xs.length);
  const wholes = rows.filter((row) => row.case.startsWith("greedy/"));
  const mixed = wholes.filter(
    (row) => row.beside?.conversions || row.beside?.["greedy conversions"],
  );
  const faster = (some: readonly BenchRow[]): number =>
    some.length > 0 ? geometricMean(some.map((row) => row.ratio)) : 0;
  const certified = rows.filter((row) => row.detail?.gap !== undefined);
  return {
    models: certified.length,
    certified: certified.filter((row) => row.detail!.gap! <= 0.01).length,
    inTime: certified.filter((row) => row.ours <= allowedNs).length,
    worstGap: Math.max(0, ...of("gap")),
    regions: of("regret").length,
    meanRegret: mean(of("regret")),
    worstRegret: Math.max(0, ...of("regret")),
    overGreedy: faster(wholes),
    overGreedyMixed: faster(mixed),
    worstOverGreedy: Math.min(...wholes.map((row) => row.ratio)),
  };
}
