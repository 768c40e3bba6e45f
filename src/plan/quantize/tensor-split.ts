/**
 * A tensor split: every device holds a part of each layer and all work at once, so the slowest decides.
 * Attention is cut by whole KV heads with their query heads; where devices outnumber KV heads a head is
 * cut by its query heads, and each part holds the head's keys and values again. All other matrices are
 * cut anywhere. In: bytes and what each device may hold and read. Out: the split whose slowest device
 * takes the least time, by bisection: for a given time a device takes `min(time x rate, budget)` bytes,
 * and that is enough exactly if whole units and all bytes find room.
 */
import type { DecoderShape } from "./model.ts";

export interface SplitDevice {
  readonly budgetBytes: number;
  readonly bytesPerNs: number;
}

export interface TensorPart {
  /** Of the weights; more than 1 over all devices where KV projections are held twice. */
  readonly weightShare: number;
  readonly cacheShare: number;
  /** KV heads whose keys and values it holds; 0 where the decoder is not known. */
  readonly kvHeads: number;
}

export interface TensorSplit {
  readonly parts: readonly TensorPart[];
  readonly shortfallBytes: number;
}

export interface SplitLoad {
  readonly weightBytes: number;
  readonly cacheBytes: number;
  readonly decoder?: DecoderShape | undefined;
}

/** Query heads: those that the model states, else as many as fill the hidden width. */
export function queryHeads({ heads, hidden, headWidth, kvHeads }: DecoderShape): number {
  return heads ?? Math.max(kvHeads, Math.round(hidden / headWidth));
}

/** What cannot be cut: a KV head, or a part of its query heads with the whole head's keys and values. */
interface Units {
  readonly count: number;
  readonly perHead: number;
  readonly weightBytes: number;
  readonly cacheBytes: number;
  /** Bytes of all units together, copies counted, and of what is cut anywhere. */
  readonly restBytes: number;
}

function unitsOf({ weightBytes, cacheBytes, decoder }: SplitLoad, devices: number): Units {
  if (!decoder) {
    return { count: 0, perHead: 1, weightBytes: 0, cacheBytes: 0, restBytes: weightBytes };
  }
  const { hidden, kvHeads, headWidth, intermediate } = decoder;
  const heads = queryHeads(decoder);
  const perHead = Math.ceil(devices / kvHeads);
  const queries = 2 * hidden * heads * headWidth;
  const keysAndValues = 2 * hidden * kvHeads * headWidth;
  const layer = queries + keysAndValues + 3 * hidden * intermediate * (decoder.experts ?? 1);
  const queryBytes = (weightBytes * queries) / layer;
  const keyBytes = (weightBytes * keysAndValues) / layer;
  // The largest part of a head's queries, where they do not divide.
  const group = Math.max(1, Math.floor(heads / kvHeads));
  const part = Math.ceil(group / perHead) / group;
  return {
    count: kvHeads * perHead,
    perHead,
    weightBytes: (queryBytes * part + keyBytes) / kvHeads,
    cacheBytes: cacheBytes / kvHeads,
    restBytes: weightBytes - queryBytes - keyBytes,
  };
}

export function splitTensors(load: SplitLoad, devices: readonly SplitDevice[]): TensorSplit {
  const units = unitsOf(load, devices.length);
  const roomAt = (ns: number): readonly number[] =>
    devices.map((d) => Math.max(0, Math.min(ns * d.bytesPerNs, d.budgetBytes)));
  const all = roomAt(Infinity);
  const shortfallBytes = Math.ceil(lacking(units, all));
  if (shortfallBytes > 0) {
    const even = { weightShare: 1 / devices.length, cacheShare: 1 / devices.length, kvHeads: 0 };
    return { parts: devices.map(() => even), shortfallBytes };
  }
  const slowest = Math.min(...devices.map((d) => d.bytesPerNs));
  let high = (units.restBytes + units.count * (units.weightBytes + units.cacheBytes)) / slowest;
  let low = 0;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (lacking(units, roomAt(middle)) > 0) low = middle;
    else high = middle;
  }
  return { parts: dealOut(load, units, roomAt(high)), shortfallBytes: 0 };
}

function wholeUnits({ weightBytes, cacheBytes }: Units, room: number): number {
  return Math.floor(room / (weightBytes + cacheBytes) + 1e-9);
}

/** Bytes without room. */
function lacking(units: Units, room: readonly number[]): number {
  const { count, weightBytes, cacheBytes, restBytes } = units;
  const unit = weightBytes + cacheBytes;
  const there = room.reduce((a, b) => a + b, 0);
  const inAll = count * unit + restBytes - there;
  if (count === 0) return inAll;
  const homeless = count - room.reduce((sum, r) => sum + wholeUnits(units, r), 0);
  return Math.max(inAll, homeless * unit);
}

/** Units to those with the most room left for one more, then the rest to fill what is left alike. */
function dealOut(load: SplitLoad, units: Units, room: readonly number[]): readonly TensorPart[] {
  const unit = units.weightBytes + units.cacheBytes;
  const held = room.map(() => 0);
  for (let u = 0; u < units.count; u++) {
    const share = (i: number): number => (room[i]! - held[i]! * unit) / Math.max(room[i]!, 1);
    const open = room.map((_, i) => i).filter((i) => held[i]! < wholeUnits(units, room[i]!));
    const best = open.reduce((a, b) => (share(b) > share(a) ? b : a));
    held[best]!++;
  }
  const left = room.map((r, i) => Math.max(0, r - held[i]! * unit));
  const free = left.reduce((a, b) => a + b, 0);
  return room.map((_, i): TensorPart => {
    const rest = free > 0 ? (units.restBytes * left[i]!) / free : 0;
    const heads = held[i]! * (1 / units.perHead);
    const copies = units.perHead > 1 ? held[i]! : heads;
    return {
      weightShare: (held[i]! * units.weightBytes + rest) / load.weightBytes,
      cacheShare: load.cacheBytes > 0 ? (held[i]! * units.cacheBytes) / load.cacheBytes : 0,
      kvHeads: copies,
    };
  });
}
