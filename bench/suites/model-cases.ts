/**
 * Bench cases out of the model table: every model at every shape, one runtime against another. The
 * file is fetched and both sessions are opened when the first case of a model begins, and released when
 * another model's does.
 */
import { DiagnosticError } from "../../src/support/diagnostic.ts";
import { invariant } from "../../src/support/invariant.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Beside, Contest } from "../measure/contest.ts";
import { fetchModel } from "../models/fetch.ts";
import { hintsFor, randomInputs } from "../models/random-inputs.ts";
import { roundingOf } from "../models/rounding.ts";
import type { ModelCase, ModelRow } from "../models/table.ts";
import { countElements, type Rounding, toleranceOf, worstDifference } from "../sessions/compare.ts";
import { lacksKernels, PeerLacksKernels } from "../sessions/peer-kernels.ts";
import type { Runtime, Session, Tensors } from "../sessions/session.ts";
import type { ContestCase } from "./suite.ts";

/** Cases, and what ends the sessions that the last of them left open. */
export interface ModelCases {
  readonly cases: readonly ContestCase[];
  readonly close: () => Promise<void>;
}

/** A model, open on both sides. */
interface OpenModel {
  readonly row: ModelRow;
  readonly rounding: Rounding;
  readonly sessions: readonly [Session, Session];
}

/** Cases that are not a row's own. */
export interface CaseStyle {
  /** In place of the row's family. */
  readonly family: string;
  /** Said of a model behind its times. */
  readonly beside: (sessions: readonly [Session, Session]) => Beside;
  /**
   * Whether times are held against what the machine can do. Two sides of our own judge each other, and
   * peaks that were taken on a busy machine refuse what is true.
   */
  readonly floors: boolean;
}

/** One case for each row and shape. The shapes of a row share its sessions: it is compiled once. */
export function modelCases(
  [ours, peer]: readonly [Runtime, Runtime],
  rows: readonly ModelRow[],
  style?: CaseStyle,
): ModelCases {
  let last: OpenModel | undefined;
  const close = async (): Promise<void> => {
    const ending = last?.sessions ?? [];
    last = undefined;
    for (const session of ending) await session.release();
  };
  const open = async (row: ModelRow): Promise<OpenModel> => {
    if (last?.row === row) return last;
    await close();
    last = await openModel(row, [ours, peer]);
    return last;
  };
  const cases = rows.flatMap((row) =>
    row.cases.map((modelCase) => ({
      case: `${style?.family ?? row.family}/${row.name}/${modelCase.name}`,
      peerName: peer.name,
      open: async () => openContest(await open(row), modelCase, style),
    })),
  );
  return { cases, close };
}

async function openModel(
  row: ModelRow,
  [ours, peer]: readonly [Runtime, Runtime],
): Promise<OpenModel> {
  const bytes = fetchModel(row);
  if (!bytes.ok) throw new DiagnosticError(bytes.diagnostics);
  const rounding = roundingOf(bytes.value);
  if (!rounding.ok) throw new DiagnosticError(rounding.diagnostics);
  // The peer first: compiling for nothing takes longer than its refusal.
  const peerSession = await openPeer(peer, bytes.value, row);
  try {
    const oursSession = await ours.open(bytes.value, hintsFor(row));
    return { row, rounding: rounding.value, sessions: [oursSession, peerSession] };
  } catch (error) {
    await peerSession.release();
    throw error;
  }
}

async function openPeer(peer: Runtime, bytes: Uint8Array, row: ModelRow): Promise<Session> {
  try {
    return await peer.open(bytes, hintsFor(row));
  } catch (error) {
    throw lacksKernels(error) ? new PeerLacksKernels(peer.name, row.name) : error;
  }
}

/** The sessions outlive the contest. */
async function openContest(
  { rounding, sessions }: OpenModel,
  modelCase: ModelCase,
  style: CaseStyle | undefined,
): Promise<Contest> {
  const contest = {
    ...sessionContest(rounding, modelCase, sessions),
    ...(style && { beside: style.beside(sessions) }),
    isOneProgram: isOneProgram(sessions),
    close: async () => {},
  };
  if (style?.floors === false) return contest;
  const floor = await sessions[0].floorNs?.(randomInputs(modelCase, new Rng(0)));
  return floor === undefined ? contest : { ...contest, floorNs: { ours: floor } };
}

/**
 * Both sessions on the same inputs, compared within the model's rounding.
 * @param reuse whether outputs of a run take those of the next, on both sides: what is timed is then the
 * work and no pages of new arrays
 */
export function sessionContest(
  rounding: Rounding,
  modelCase: ModelCase,
  [ours, peer]: readonly [Session, Session],
  { reuse = false } = {},
): Contest {
  const kept: [Tensors?, Tensors?] = [];
  const run = async (side: 0 | 1): Promise<Tensors> => {
    const outputs = await [ours, peer][side]!.run(drawn(), kept[side]);
    if (reuse) kept[side] = outputs;
    return outputs;
  };
  let inputs: Tensors | undefined;
  const drawn = (): Tensors => {
    invariant(inputs !== undefined, () => "a contest runs before its inputs are drawn");
    return inputs;
  };
  return {
    refresh: (rng) => {
      inputs = randomInputs(modelCase, rng);
    },
    ours: async () => void (await run(0)),
    peer: async () => void (await run(1)),
    check: async () => {
      // What a run leaves unwritten is seen: nothing of the run before may pass for its result.
      for (const tensors of kept) {
        for (const { data } of Object.values(tensors ?? {})) data.fill(Number.NaN as never);
      }
      const expected = await run(1);
      const tolerance = toleranceOf(rounding, countElements(expected));
      const found = worstDifference(await run(0), expected, rounding);
      if (found <= tolerance) return undefined;
      return `outputs differ by ${found.toExponential(2)}, allowed ${tolerance.toExponential(2)}`;
    },
    close: async () => {
      await ours.release();
      await peer.release();
    },
  };
}

/** Where both show what they run. */
function isOneProgram([ours, peer]: readonly [Session, Session]): boolean {
  return ours.program !== undefined && ours.program === peer.program;
}
