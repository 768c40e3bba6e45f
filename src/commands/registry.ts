/** All commands, in the order of the help. */

import { bench } from "./bench.ts";
import { calibrate } from "./calibrate.ts";
import type { Command } from "./command.ts";
import { detect } from "./detect.ts";
import { doctor } from "./doctor.ts";
import { explain } from "./explain.ts";
import { exportModel } from "./export.ts";
import { inspect } from "./inspect.ts";
import { optimize } from "./optimize.ts";
import { planDispatch } from "./plan/dispatch.ts";
import { planKernels } from "./plan/kernels.ts";
import { planPlace } from "./plan/place.ts";
import { planQuantize } from "./plan/quantize.ts";
import { report } from "./report.ts";
import { run } from "./run.ts";
import { schedule } from "./schedule.ts";
import { targetsCommand } from "./targets.ts";
import { trials } from "./trials.ts";
import { verify } from "./verify.ts";

export const commands: readonly Command[] = [
  optimize,
  run,
  verify,
  bench,
  inspect,
  explain,
  report,
  exportModel,
  schedule,
  calibrate,
  targetsCommand,
  detect,
  planQuantize,
  planKernels,
  planPlace,
  planDispatch,
  trials,
  doctor,
];
