/**
 * States of a model that has no one program to keep them in: it is specialised to sizes, runs in stages, or
 * its states change their extents (keys and values that grow by a token). What an output was is fed to its
 * input in the next run. A state begins as zeros; extents of it that the other inputs do not decide begin
 * as 0: nothing was kept yet.
 */
import type { Feeds, KernelTime, Outputs } from "../../runtime/model-session.ts";
import { fromRef, type Tensor, zeroRef } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { named } from "../../support/named.ts";
import { type StateLinks, unknownState } from "./link-states.ts";
import type { ModelFace, RunningModel } from "./loaded-model.ts";
import type { ModelPorts, Port } from "./ports.ts";

interface CarriedState {
  readonly port: Port;
  /** Names of the values that the session feeds and gives. */
  readonly input: string;
  readonly output: string;
}

interface Started {
  readonly face: ModelFace;
  readonly session: RunningModel;
}

/** The model with its states carried from run to run. */
export function carryStates({ face, session }: Started, links: StateLinks): Result<Started> {
  const { meta } = face.start;
  const { inputs, outputs } = face.ports;
  const states: CarriedState[] = [];
  for (const [from, to] of Object.entries(links)) {
    const port = inputs.find((p) => p.name === from);
    const kept = outputs.find((p) => p.name === to);
    if (!port || !kept) return fail(unknownState(from, to, namesOf(face.ports)));
    if (!mayTakeOver(port, kept)) return fail(otherType(port, kept));
    const input = meta.inputs.find((p) => p.name === from)!.value;
    states.push({ port, input, output: meta.outputs.find((p) => p.name === to)!.value });
  }
  const ports = {
    outputs,
    inputs: inputs.map((p) => (Object.hasOwn(links, p.name) ? { ...p, keeps: links[p.name]! } : p)),
  };
  const fed = meta.inputs.flatMap(({ value }, i) =>
    states.some((s) => s.input === value) ? [] : [{ value, port: inputs[i]! }],
  );
  return ok({ face: { ...face, ports }, session: new StateCarrier(session, states, fed) });
}

function namesOf({ inputs, outputs }: ModelPorts) {
  return { inputs: inputs.map((p) => p.name), outputs: outputs.map((p) => p.name) };
}

/** Extents with names are known at run time, and compared then. */
function mayTakeOver(input: Port, output: Port): boolean {
  const isOther = (extent: number | string, axis: number): boolean => {
    const given = output.shape[axis];
    return typeof extent === "number" && typeof given === "number" && extent !== given;
  };
  return (
    input.dtype === output.dtype &&
    input.shape.length === output.shape.length &&
    !input.shape.some(isOther)
  );
}

function otherType(input: Port, output: Port): Diagnostic {
  const typeOf = ({ dtype, shape }: Port): string => `${dtype}[${shape.join(", ")}]`;
  const found = `${typeOf(input)} with ${typeOf(output)}`;
  return diagnostic("GRF011", `state "${input.name}" -> "${output.name}" pairs ${found}`, {
    help: "a state takes over an output of its own type",
  });
}

class StateCarrier implements RunningModel {
  readonly #session: RunningModel;
  readonly #states: readonly CarriedState[];
  /** The inputs that are no states. */
  readonly #fed: readonly { readonly value: string; readonly port: Port }[];
  readonly #kept = new Map<string, Tensor>();

  constructor(
    session: RunningModel,
    states: readonly CarriedState[],
    fed: readonly { readonly value: string; readonly port: Port }[],
  ) {
    this.#session = session;
    this.#states = states;
    this.#fed = fed;
  }

  run(feeds: Feeds): Result<Outputs> {
    return this.#keep(this.#session.run(this.#withStates(feeds)));
  }

  async runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    return this.#keep(await this.#session.runAsync(this.#withStates(feeds), signal));
  }

  profile(
    feeds: Feeds,
    now: () => number,
  ): Result<{ readonly outputs: Outputs; readonly kernels: readonly KernelTime[] }> {
    const ran = this.#session.profile(this.#withStates(feeds), now);
    if (ran.ok) this.#keep(ok(ran.value.outputs));
    return ran;
  }

  poison(): void {
    this.#session.poison();
  }

  resetStates(): void {
    this.#kept.clear();
  }

  dispose(): Promise<void> {
    return this.#session.dispose();
  }

  #withStates(feeds: Feeds): Feeds {
    const states = this.#states
      .filter(({ input }) => named(feeds, input) === undefined)
      .map(({ input, port }) => [input, this.#kept.get(input) ?? this.#first(port, feeds)]);
    return { ...feeds, ...(Object.fromEntries(states) as Feeds) };
  }

  /** Zeros of the extents that the other inputs have. */
  #first({ dtype, shape }: Port, feeds: Feeds): Tensor {
    const sizes = new Map<string, number>();
    for (const { value, port } of this.#fed) {
      const given = named(feeds, value)?.shape;
      for (const [axis, extent] of port.shape.entries()) {
        if (typeof extent === "string" && given?.[axis] !== undefined) {
          sizes.set(extent, given[axis]);
        }
      }
    }
    const extents = shape.map((e) => (typeof e === "number" ? e : (sizes.get(e) ?? 0)));
    return fromRef(zeroRef(dtype, extents));
  }

  /** Copies: the outputs are the caller's. */
  #keep(outputs: Result<Outputs>): Result<Outputs> {
    if (!outputs.ok) return outputs;
    for (const { input, output } of this.#states) {
      const tensor = outputs.value[output]!;
      this.#kept.set(input, { ...tensor, data: tensor.data.slice() });
    }
    return outputs;
  }
}
