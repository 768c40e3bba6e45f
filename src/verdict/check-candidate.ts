/**
 * Compares what a candidate computes with the oracle at sampled points of its region, on fresh random
 * inputs, outputs poisoned beforehand. The only maker of an Agreement. Where most expected values are no
 * finite numbers (roots of negative inputs), the check is made again on positive inputs; where none is, nothing
 * was compared.
 */
import { distanceOf, spacingOf } from "../interp/approximate.ts";
import { type Fill, FillBlocks, repeatsOfFill } from "../runtime/child/fill.ts";
import type { DType } from "../semantics/dtype.ts";
import { dtypes } from "../semantics/dtype.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import { elementCount } from "../semantics/shape.ts";
import { tensorFromBytes, toRef } from "../semantics/tensor.ts";
import { attempt, type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import type { Bench, Candidate } from "./candidate.ts";
import type { CandidateSession, Step } from "./candidate-session.ts";
import { checkedSymbols, drawFills, type Symbols } from "./region-inputs.ts";
import { type ExpectedElement, RegionOracle } from "./region-oracle.ts";
import { Agreement, type Mismatch, type Rejected, type Wrong } from "./verdict.ts";

export type CheckOutcome =
  | { readonly kind: "agrees"; readonly agreement: Agreement }
  /** The oracle cannot say; nothing was compared. */
  | { readonly kind: "unchecked"; readonly diagnostics: readonly Diagnostic[] }
  | Wrong
  | Rejected;

/** Blocks of random numbers that checks of one seed share. */
export class CheckBlocks {
  readonly blocks = new FillBlocks();
}

/**
 * Checks a candidate for each set of symbol values that is drawn. All that it asks of the child is asked
 * before this returns its promise, so that the child goes from one to the next by itself; but for a check
 * that is made again, for which a session that was unloaded meanwhile is loaded again.
 */
export async function checkCandidate(
  candidate: Candidate,
  session: CandidateSession,
  { seed }: Bench,
  shared: CheckBlocks,
): Promise<CheckOutcome> {
  const rng = new Rng(seed);
  const bindings = checkedSymbols(candidate.region, candidate.program, rng);
  if (bindings.length === 0) {
    const message = "no drawn values of the symbols meet the program's requirements";
    const at = `region ${candidate.region.name}`;
    return { kind: "unchecked", diagnostics: [diagnostic("VER004", message, { at })] };
  }
  const asked = bindings.map((symbols) => {
    const check = new Check({ candidate, session, symbols, seed, shared });
    return { check, first: check.once("any") };
  });
  let agreement: Agreement | undefined;
  for (const { check, first } of asked) {
    const outcome = await check.withSigns(first);
    if (outcome.kind !== "agrees") return outcome;
    agreement = agreement?.and(outcome.agreement) ?? outcome.agreement;
  }
  const asksNothing = asked.every(({ check }) => check.isEmpty);
  if (agreement!.checked > 0 || asksNothing) return { kind: "agrees", agreement: agreement! };
  const message = "no element that was looked at is a finite number, in the code and in the oracle";
  const at = `region ${candidate.region.name}`;
  return { kind: "unchecked", diagnostics: [diagnostic("VER004", message, { at })] };
}

interface CheckParts {
  readonly candidate: Candidate;
  readonly session: CandidateSession;
  readonly symbols: Symbols;
  readonly seed: number;
  readonly shared: CheckBlocks;
}

interface Found {
  readonly elements: ReadonlyMap<string, ReadonlyMap<number, ScalarValue>>;
  /** First element of an output that is written whole and was left as it was. */
  readonly unwritten: { readonly tensor: string; readonly offset: number } | undefined;
}

class Check {
  readonly #parts: CheckParts;
  #vague = false;
  /** No element was looked at. */
  isEmpty = true;

  constructor(parts: CheckParts) {
    this.#parts = parts;
  }

  async withSigns(asked: Promise<CheckOutcome>): Promise<CheckOutcome> {
    const first = await asked;
    if (first.kind !== "agrees" || !this.#vague) return first;
    const { session } = this.#parts;
    const loaded = session.isLoaded ? undefined : await session.load();
    if (loaded && loaded.kind !== "done") return loaded;
    const second = await this.once("positive");
    if (second.kind !== "agrees") return second;
    return { kind: "agrees", agreement: first.agreement.and(second.agreement) };
  }

  async once(sign: Fill["sign"]): Promise<CheckOutcome> {
    const { candidate, session, symbols, seed, shared } = this.#parts;
    const { region } = candidate;
    const rng = new Rng(seed);
    const fills = drawFills(region, symbols, sign, rng);
    const given = (tensor: string) => repeatsOfFill(fills.get(tensor)!, shared.blocks);
    const { tiles, operandError } = candidate;
    const options = { region, symbols, given, tiles, rng, ...(operandError && { operandError }) };
    const made = attempt(() => new RegionOracle(options));
    if (!made.ok) return { kind: "unchecked", diagnostics: made.diagnostics };
    const oracle = made.value;
    const contents = [...fills].map(([tensor, fill]) => {
      return { tensor, fill, shape: oracle.shapeOf(tensor) };
    });
    const running = session.run(Object.fromEntries(symbols), contents);
    const reading = this.#read(oracle);
    const [ran, found] = [await running, await reading];
    if (ran.kind !== "done") return ran;
    if (found.kind !== "done") return found;
    const { elements, unwritten } = found.value;
    const expected = attempt(() =>
      oracle.expected((tensor) => (offset) => elements.get(tensor)!.get(offset)!),
    );
    if (!expected.ok) return { kind: "unchecked", diagnostics: expected.diagnostics };
    return this.#compare(oracle, expected.value, elements, unwritten);
  }

  async #read(oracle: RegionOracle): Promise<Step<Found>> {
    const { session, candidate } = this.#parts;
    const elements = new Map<string, ReadonlyMap<number, ScalarValue>>();
    let unwritten: Found["unwritten"];
    const asked = [...oracle.plan.offsets].map(([tensor, offsets]) => {
      const { dtype } = candidate.region.tensors.get(tensor)!;
      const whole = oracle.plan.whole.has(tensor) || dtypes[dtype].bits < 8;
      const reading = session.read(tensor, whole ? undefined : offsets);
      return { tensor, offsets, dtype, whole, reading };
    });
    for (const { tensor, offsets, dtype, whole, reading } of asked) {
      const answer = await reading;
      if (answer.kind !== "done") return answer;
      const { bytes, unwritten: hole } = answer.value;
      const count = elementCount(oracle.shapeOf(tensor));
      const values = valuesOf(dtype, bytes, whole ? count : offsets.length);
      elements.set(
        tensor,
        new Map(
          whole
            ? Array.from({ length: count }, (_, i) => [i, values(i)] as const)
            : Array.from(offsets, (offset, i) => [offset, values(i)] as const),
        ),
      );
      if (hole !== undefined && oracle.plan.covered.has(tensor)) {
        unwritten ??= { tensor, offset: hole };
      }
    }
    return { kind: "done", value: { elements, unwritten } };
  }

  #compare(
    oracle: RegionOracle,
    expected: readonly ExpectedElement[],
    elements: Found["elements"],
    unwritten: Found["unwritten"],
  ): CheckOutcome {
    const { candidate, seed } = this.#parts;
    const tally = new Tally();
    for (const e of expected) {
      const { dtype } = candidate.region.tensors.get(e.tensor)!;
      tally.add(e, elements.get(e.tensor)!.get(e.offset)!, dtype);
    }
    this.#vague = 2 * tally.finite < expected.length;
    this.isEmpty &&= expected.length === 0;
    const place = (e: { tensor: string; offset: number }) => ({
      tensor: e.tensor,
      index: indexOf(e.offset, oracle.shapeOf(e.tensor)),
    });
    const mismatch = ({ element, found }: Miss): Mismatch => ({
      ...place(element),
      found: String(found),
      expected: String(element.value),
      tolerance: element.error,
    });
    if (tally.first && tally.worst) {
      const [first, worst] = [mismatch(tally.first), mismatch(tally.worst)];
      const checked = expected.length;
      return { kind: "wrong", checked, wrong: tally.wrong, first, worst, seed };
    }
    if (unwritten) {
      const hole = {
        ...place(unwritten),
        found: "never written",
        expected: "a value",
        tolerance: 0,
      };
      return { kind: "wrong", checked: expected.length, wrong: 1, first: hole, worst: hole, seed };
    }
    const { worstRatio, worstUlp } = tally;
    const tolerance = toleranceText(candidate);
    const found = { checked: tally.finite, worst: worstRatio, worstUlp, tolerance, seed };
    return { kind: "agrees", agreement: Agreement.afterComparison(found) };
  }
}

interface Miss {
  readonly element: ExpectedElement;
  readonly found: ScalarValue;
  readonly ratio: number;
}

/** What a comparison has seen so far. */
class Tally {
  wrong = 0;
  /** Elements that are finite in both: others can only be alike or not. */
  finite = 0;
  worstRatio = 0;
  worstUlp = 0;
  first: Miss | undefined;
  worst: Miss | undefined;

  add(element: ExpectedElement, found: ScalarValue, dtype: DType): void {
    const { value, error } = element;
    if (Number.isFinite(Number(value)) && Number.isFinite(Number(found))) this.finite++;
    const distance = distanceOf(found, value);
    if (distance === 0) return;
    const ratio = error > 0 ? distance / error : Infinity;
    if (ratio <= 1) {
      this.worstRatio = Math.max(this.worstRatio, ratio);
      this.worstUlp = Math.max(this.worstUlp, distance / ulpOf(dtype, value));
      return;
    }
    const miss = { element, found, ratio };
    this.wrong++;
    this.first ??= miss;
    if (!this.worst || !(ratio <= this.worst.ratio)) this.worst = miss;
  }
}

/** Spacing of the type's values at a value; 1 for integers. */
function ulpOf(dtype: DType, value: ScalarValue): number {
  const { relative, least } = spacingOf(dtype);
  if (relative === 0) return 1;
  const exponent = Math.floor(Math.log2(Math.abs(Number(value))));
  return Math.max(least, Number.isFinite(exponent) ? relative * 2 ** exponent : 0);
}

function toleranceText({ region, operandError }: Candidate): string {
  const types = new Set(
    region.statements.flatMap((s) => s.writes.map((w) => region.tensors.get(w.tensor)!.dtype)),
  );
  const folds = region.statements.flatMap((s) => s.loops.filter((l) => l.kind === "reduce"));
  const length = folds.map((l) => l.extent.key).join(" * ");
  const rounded = operandError ? `, operands off by ${operandError.toExponential(2)}` : "";
  return `${[...types].join(", ")}${length === "" ? "" : `, folds of ${length}`}${rounded}`;
}

function valuesOf(dtype: DType, bytes: Uint8Array, count: number): (i: number) => ScalarValue {
  const { data } = toRef(tensorFromBytes(dtype, [count], bytes));
  return (i) => data[i]!;
}

function indexOf(offset: number, shape: readonly number[]): number[] {
  const index: number[] = [];
  let rest = offset;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(rest % shape[axis]!);
    rest = Math.floor(rest / shape[axis]!);
  }
  return index;
}
