/**
 * What a bench prints: the rows of design section "Measuring" (a ratio above 1: ours is better),
 * their summary, and the text and JSON forms. Cases that failed are listed beside the rows, never
 * among them; losses are shown like wins.
 */
import { geometricMean } from "../src/runtime/measure/statistics.ts";

/** One measured case; times are nanoseconds of one run. */
export interface BenchRow {
  readonly case: string;
  readonly ours: number;
  readonly peer: number;
  readonly peerName: string;
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  readonly n: number;
  /** The ratio of the first runs after rests, with its interval: what a caller meets who runs now and then. */
  readonly first?: Readonly<Record<"ratio" | "low" | "high", number>>;
  /** What the suite says of the case in place of two times. */
  readonly detail?: Readonly<Record<string, number>>;
  /** Beside the times or the detail: figures, or what the suite has to say. */
  readonly beside?: Readonly<Record<string, number | string>>;
  /** Counts for `worst` alone. */
  readonly onlyWorst?: true;
}

/** A case without a time, and why. What is skipped has no peer, and does not count as failed. */
export interface FailedCase {
  readonly case: string;
  readonly peerName: string;
  readonly kind: "wrong" | "implausible" | "unsupported" | "slow" | "skipped";
  readonly reason: string;
}

export interface BenchSummary {
  /** Geometric mean over the families of the geometric mean of a family's ratios. */
  readonly geomean: number;
  /** The lowest median ratio. */
  readonly worst: number;
  readonly cases: number;
}

export interface BenchReport {
  readonly machine: {
    readonly processor: string;
    readonly cores: number;
    readonly memoryBytes: number;
    readonly system: string;
    /** Load average over one minute when the bench began. */
    readonly load: number;
    readonly threads: number;
    /** What times are of: the wall's, or what this process was given of the processor. */
    readonly clock: string;
  };
  readonly versions: Readonly<Record<string, string>>;
  readonly results: readonly BenchRow[];
  readonly failed: readonly FailedCase[];
  readonly skipped: readonly FailedCase[];
  /** Absent when no case was measured. */
  readonly summary?: BenchSummary | SuiteSummary;
}

/** What a suite says of all its cases, where ratios of times do not say it. */
export type SuiteSummary = Readonly<Record<string, number>>;

/** Further figures of a summary that has the usual three. */
function otherFigures(summary: BenchSummary | SuiteSummary): string {
  const { geomean: _, worst: __, cases: ___, ...rest } = { ...summary } as SuiteSummary;
  return Object.keys(rest).length === 0 ? "" : `  ${describeFigures(rest)}`;
}

/** A case's family is the part of its name before the first slash. */
export function summarise(rows: readonly BenchRow[]): BenchSummary | undefined {
  if (rows.length === 0) return undefined;
  const families = new Map<string, number[]>();
  const meant = rows.filter((row) => !row.onlyWorst);
  for (const row of meant.length > 0 ? meant : rows) {
    const family = `${row.case.split("/", 1)[0]} ${row.peerName}`;
    families.set(family, [...(families.get(family) ?? []), row.ratio]);
  }
  return {
    geomean: geometricMean([...families.values()].map(geometricMean)),
    worst: Math.min(...rows.map((row) => row.ratio)),
    cases: rows.length,
  };
}

export function describeMachine({ machine, versions }: BenchReport): string {
  const memory = (machine.memoryBytes / 2 ** 30).toFixed(0);
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `machine: ${machine.processor}, ${machine.cores} cores, ${memory} GiB, ${machine.system}, ` +
      `load ${machine.load.toFixed(2)}, ${machine.threads} threads, ${machine.clock} time`,
    `versions: ${packages.join(", ")}`,
  ].join("\n");
}

export function describeRow(row: BenchRow): string {
  const beside = row.beside ? `  ${describeBeside(row.beside)}` : "";
  return `${describeTimes(row)}${beside}`;
}

function describeBeside(beside: Readonly<Record<string, number | string>>): string {
  return Object.entries(beside)
    .map(([name, value]) => `${name} ${typeof value === "number" ? shortNumber(value) : value}`)
    .join("  ");
}

function shortNumber(value: number): string {
  return Number.isInteger(value) && value < 1e6 ? String(value) : value.toPrecision(4);
}

function describeTimes(row: BenchRow): string {
  if (row.detail) return `${row.case}  ${describeFigures(row.detail)}  n ${row.n}`;
  const first = row.first ? `  first run ${describeRatio(row.first)}` : "";
  return `${row.case}  ours ${formatNs(row.ours)}  ${row.peerName} ${formatNs(row.peer)}  ratio ${describeRatio(row)}  n ${row.n}${first}`;
}

function describeRatio({ ratio, low, high }: NonNullable<BenchRow["first"]>): string {
  return `${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
}

export function describeFailure(failure: FailedCase): string {
  return `${failure.case}  ${failure.peerName}  ${failure.kind.toUpperCase()}: ${failure.reason}`;
}

export function describeSummary({ summary, failed, skipped }: BenchReport): string {
  const left = skipped.length === 0 ? "" : `  skipped ${skipped.length}`;
  if (summary === undefined) return `no case measured, ${failed.length} failed${left}`;
  if (!isBenchSummary(summary))
    return `${describeFigures(summary)}  failed ${failed.length}${left}`;
  const { geomean, worst, cases } = summary;
  return `geomean ${geomean.toFixed(3)}  worst ${worst.toFixed(3)}  cases ${cases}${otherFigures(summary)}  failed ${failed.length}${left}`;
}

function isBenchSummary(summary: BenchSummary | SuiteSummary): summary is BenchSummary {
  return "geomean" in summary;
}

function describeFigures(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value.toFixed(3)}`)
    .join("  ");
}

/** Three significant digits in the unit that fits. */
export function formatNs(ns: number): string {
  const units: readonly (readonly [string, number])[] = [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
  ];
  const [unit, scale] = units.find(([, size]) => ns >= size) ?? ["ns", 1];
  return `${(ns / scale).toPrecision(3)} ${unit}`;
}
