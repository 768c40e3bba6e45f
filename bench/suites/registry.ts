/** All suites that `npm run bench -- NAME` knows, one file each. */
import { affineSuite } from "./affine.ts";
import { ceilingSuite } from "./ceiling.ts";
import { collapseSuite } from "./collapse.ts";
import { correlationSuite } from "./correlation.ts";
import { egraphSuite } from "./egraph.ts";
import { gemmSuite } from "./gemm.ts";
import { loadSuite } from "./load.ts";
import { modelsSuite } from "./models.ts";
import { optimizeSuite } from "./optimize.ts";
import { peersSuite } from "./peers.ts";
import { rewriteSuite } from "./rewrite.ts";
import { solverSuite } from "./solver.ts";
import type { Suite } from "./suite.ts";

export const suites: readonly Suite[] = [
  // one a line
  egraphSuite,
  affineSuite,
  loadSuite,
  optimizeSuite,
  modelsSuite,
  gemmSuite,
  ceilingSuite,
  peersSuite,
  rewriteSuite,
  solverSuite,
  correlationSuite,
  collapseSuite,
];
