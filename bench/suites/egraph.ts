/**
 * The e-graph against egg, built from its crate: the same rules on the same terms for the same
 * iterations, interleaved; both must end with the same numbers of nodes and classes. Times are processor
 * time, so that a busy machine shows the same ratio: ours of all threads and with the reading of the
 * rules, egg's of its one thread and without. The code that ours writes for the rules is compiled in the
 * round that warms up, as egg's is before it runs. Cases with proofs count for the worst ratio, not for
 * the mean.
 */
import { EGraph } from "../../src/egraph/e-graph.ts";
import { microRules, microTerms } from "../../src/egraph/math.test-support.ts";
import { readRules } from "../../src/egraph/rule.ts";
import { saturate } from "../../src/egraph/saturate.ts";
import { addPattern } from "../../src/egraph/term.ts";
import { estimateRatio, type TimingPair } from "../../src/runtime/measure/statistics.ts";
import { Rng } from "../../src/support/rng.ts";
import {
  EggDriver,
  eggVersion,
  type Measured,
  prepareEgg,
  type Workload,
} from "../egg/egg-driver.ts";
import type { BenchRow, FailedCase } from "../report.ts";
import type { ForeignCase, Suite } from "./suite.ts";

const rounds = 7;

const mathRules = microRules.map(({ name, left, right }) => ({
  name,
  left: String(left),
  right: String(right),
}));

/** Ten summands in every order and grouping: 57,012 nodes, most of the work proves known equalities. */
const sum = ["a", "b", "c", "d", "e", "f", "g", "h", "k", "l"].reduceRight(
  (r, x) => `(+ ${x} ${r})`,
);

const workloads: Readonly<Record<string, Omit<Workload, "proofs">>> = {
  "math-microbenchmark": { rules: mathRules, terms: microTerms, iterations: 11 },
  "sum-of-10": {
    rules: mathRules.filter(({ name }) => name === "comm-add" || name === "assoc-add"),
    terms: [sum],
    iterations: 100,
  },
};

export const egraphSuite: Suite = {
  name: "egraph",
  summary: "equality saturation against egg, proofs off and on",
  targets: ["node"],
  peers: [],
  ownClock: "processor",
  preparePeers: prepareEgg,
  load: async () => {
    const cases = Object.entries(workloads).flatMap(([name, workload]) =>
      [false, true].map((proofs) => caseOf(name, { ...workload, proofs })),
    );
    const bytes = [false, true].map((proofs) => bytesPerNode(proofs).toFixed(0));
    return {
      versions: { egg: eggVersion(), "bytes per e-node": `${bytes[0]} (with proofs ${bytes[1]})` },
      cases,
    };
  },
};

function caseOf(name: string, workload: Workload): ForeignCase {
  const label = `${name}/proofs-${workload.proofs ? "on" : "off"}`;
  const peerName = `egg ${eggVersion()}`;
  return {
    case: label,
    peerName,
    measure: async () => {
      const driver = new EggDriver();
      const found = await race(driver, workload);
      driver.close();
      if (typeof found === "string") {
        return { case: label, peerName, kind: "wrong", reason: found } satisfies FailedCase;
      }
      const { oursNs, peerNs, ...estimate } = estimateRatio(found, new Rng(1));
      const times = { case: label, ours: oursNs, peer: peerNs, peerName, ...estimate };
      const row: BenchRow = workload.proofs ? { ...times, onlyWorst: true } : times;
      return row;
    },
  };
}

/** Timed pairs after one round that warms both sides up, or how the results differ. */
async function race(driver: EggDriver, workload: Workload): Promise<TimingPair[] | string> {
  const pairs: TimingPair[] = [];
  for (let round = 0; round <= rounds; round++) {
    const ours = runOurs(workload);
    const peer = await driver.run(workload);
    if (ours.nodes !== peer.nodes || ours.classes !== peer.classes) {
      return `${ours.nodes} nodes and ${ours.classes} classes, egg has ${peer.nodes} and ${peer.classes}`;
    }
    if (round > 0) pairs.push({ oursNs: ours.ns, peerNs: peer.ns });
  }
  return pairs;
}

/** Time of all threads, those that collect garbage and compile among them. */
function runOurs(workload: Workload): Measured {
  const start = process.cpuUsage();
  const { nodeCount: nodes, classCount: classes } = saturateOurs(workload);
  const { user, system } = process.cpuUsage(start);
  return { ns: (user + system) * 1000, nodes, classes };
}

function saturateOurs({ rules, terms, iterations, proofs }: Workload): EGraph {
  const read = readRules(rules);
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  const graph = new EGraph({ proofs });
  for (const text of terms) addPattern(graph, text);
  const budget = { nodes: 10_000_000, work: 10_000_000_000 };
  saturate(graph, [{ name: "all", rules: read.value, iterations }], { budget });
  return graph;
}

/** Memory of the arrays, on the large workload. */
function bytesPerNode(proofs: boolean): number {
  const graph = saturateOurs({ ...workloads["math-microbenchmark"]!, proofs });
  return graph.bytes / graph.nodeCount;
}
