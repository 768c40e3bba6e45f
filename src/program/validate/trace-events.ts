/** What each thread of a cooperative kernel does, in order (trace.ts): accesses, synchronisation, cuts of loops. */
import type { TileIntrinsic } from "../intrinsics.ts";
import type { Completion, Statement } from "../statement.ts";
import type { ObjectInfo, Touch } from "./traced-objects.ts";

export interface CounterPlace {
  readonly counter: string;
  readonly at: number;
}

export type TraceEvent =
  | { readonly kind: "touch"; readonly touch: Touch; readonly text: string }
  | {
      readonly kind: "tile";
      readonly row: TileIntrinsic;
      readonly touches: readonly Touch[];
      readonly completion: Completion;
      readonly place: CounterPlace | undefined;
      /** The rank in the cluster of whose counter it is, where that is another instance's. */
      readonly peer: number | undefined;
      readonly bytes: number;
      readonly text: string;
    }
  | { readonly kind: "commit" | "await"; readonly group: string; readonly pending: number }
  | {
      readonly kind: "wait";
      readonly place: CounterPlace;
      readonly value: number;
      readonly text: string;
    }
  | {
      readonly kind: "signal" | "expect";
      readonly place: CounterPlace;
      readonly amount: number;
      readonly cluster: boolean;
      readonly text: string;
    }
  | { readonly kind: "barrier"; readonly scope: BarrierScope }
  | { readonly kind: "fence"; readonly scope: "shared" | "memory" }
  /** A place that all threads of a loop come by; `closes` where a period of the loop ends. */
  | {
      readonly kind: "cut";
      readonly label: string;
      readonly loop: string;
      readonly closes: boolean;
    };

type BarrierScope = Extract<Statement, { kind: "barrier" }>["scope"];

export interface ThreadTrace {
  readonly label: string;
  readonly role: string;
  readonly instance: number;
  readonly copy: number;
  readonly number: number;
  readonly events: readonly TraceEvent[];
}

export interface KernelTraces {
  readonly threads: readonly ThreadTrace[];
  readonly objects: ReadonlyMap<string, ObjectInfo>;
  readonly instances: number;
}
