/**
 * Bench cases out of the model table: every model at every shape, one runtime against another. The
 * file is fetched and both sessions are opened when the case begins and released when it ends.
 */
import { DiagnosticError } from "../../src/support/diagnostic.ts";
import { invariant } from "../../src/support/invariant.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Contest } from "../measure/contest.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor, randomInputs } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import type { ModelCase, ModelRow } from "../models/table.ts";
import { countElements, type Rounding, toleranceOf, worstDifference } from "../sessions/compare.ts";
import type { Runtime, Session, Tensors } from "../sessions/session.ts";
import type { ContestCase } from "./suite.ts";

/** One case for each row, shape and peer. */
export function modelCases(
  ours: Runtime,
  peers: readonly Runtime[],
  rows: readonly ModelRow[],
): ContestCase[] {
  return rows.flatMap((row) =>
    row.cases.flatMap((modelCase) =>
      peers.map((peer) => ({
        case: `${row.family}/${row.name}/${modelCase.name}`,
        peerName: peer.name,
        open: () => openContest(row, modelCase, [ours, peer]),
      })),
    ),
  );
}

async function openContest(
  row: ModelRow,
  modelCase: ModelCase,
  [ours, peer]: readonly [Runtime, Runtime],
): Promise<Contest> {
  const bytes = fetchModel(row);
  if (!bytes.ok) throw new DiagnosticError(bytes.diagnostics);
  const rounding = roundingOf(bytes.value);
  if (!rounding.ok) throw new DiagnosticError(rounding.diagnostics);
  const oursSession = await ours.open(bytes.value, hintsFor(row));
  const peerSession = await peer.open(bytes.value, hintsFor(row));
  const contest = sessionContest(rounding.value, modelCase, [oursSession, peerSession]);
  const floor = await oursSession.floorNs?.(randomInputs(modelCase, new Rng(0)));
  return floor === undefined ? contest : { ...contest, floorNs: { ours: floor } };
}

/** Both sessions on the same inputs, compared within the model's rounding. */
export function sessionContest(
  rounding: Rounding,
  modelCase: ModelCase,
  [ours, peer]: readonly [Session, Session],
): Contest {
  let inputs: Tensors | undefined;
  const drawn = (): Tensors => {
    invariant(inputs !== undefined, () => "a contest runs before its inputs are drawn");
    return inputs;
  };
  return {
    refresh: (rng) => {
      inputs = randomInputs(modelCase, rng);
    },
    ours: async () => void (await ours.run(drawn())),
    peer: async () => void (await peer.run(drawn())),
    check: async () => {
      const expected = await peer.run(drawn());
      const tolerance = toleranceOf(rounding, countElements(expected));
      const found = worstDifference(await ours.run(drawn()), expected);
      if (found <= tolerance) return undefined;
      return `outputs differ by ${found.toExponential(2)}, allowed ${tolerance.toExponential(2)}`;
    },
    close: async () => {
      await ours.release();
      await peer.release();
    },
  };
}
