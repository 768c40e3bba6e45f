/**
 * A number about a machine: its value, what it counts for (a block, a multiprocessor, the whole
 * device: distinct types, so that one is never read as another), how it is known and where it stands.
 */

/** How a number is known. `predicted`: computed from others, by the formula that the source gives. */
export const origins = ["datasheet", "detected", "measured", "predicted"] as const;
export type Origin = (typeof origins)[number];

/** What a number counts for. `sm`: one multiprocessor or compute unit; `core`: one CPU core. */
export const extents = [
  "thread",
  "block",
  "cluster",
  "sm",
  "core",
  "cluster-of-cores",
  "socket",
  "device",
  "link",
] as const;
export type Extent = (typeof extents)[number];

/** A number with where it comes from. */
export interface Sourced {
  readonly value: number;
  readonly source: string;
  readonly origin: Origin;
}

/** A number of a machine's data file. */
export interface Figure<E extends Extent = Extent> extends Sourced {
  readonly per: E;
}

type Maker<E extends Extent> = (value: number, source: string, origin?: Origin) => Figure<E>;

function maker<E extends Extent>(per: E): Maker<E> {
  return (value, source, origin = "datasheet") => ({ value, per, origin, source });
}

export const perThread = maker("thread");
export const perBlock = maker("block");
export const perCluster = maker("cluster");
export const perSm = maker("sm");
export const perCore = maker("core");
export const perSocket = maker("socket");
export const perDevice = maker("device");
export const perLink = maker("link");
/** A cache or port that several cores share. */
export const perCoreCluster = maker("cluster-of-cores");

/** A number computed from others. */
export function predicted(value: number, source: string): Sourced {
  return { value, source, origin: "predicted" };
}
