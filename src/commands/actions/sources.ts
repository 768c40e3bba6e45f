/** Numbers of a text with how each is known; where from stands once below, by number. */
import type { PlanDevice } from "../../plan/device.ts";
import type { Sourced } from "../../target/figure.ts";
import { formatBytes } from "./format.ts";

export class SourceList {
  readonly #sources: string[] = [];

  /** `text (measured [2])`. */
  mark(text: string, { origin, source }: Pick<Sourced, "origin" | "source">): string {
    if (!this.#sources.includes(source)) this.#sources.push(source);
    return `${text} (${origin} [${this.#sources.indexOf(source) + 1}])`;
  }

  lines(): readonly string[] {
    return this.#sources.map((source, i) => `[${i + 1}] ${source}`);
  }
}

/** A line a kind of device: `h100#0 … h100#3: 79.6 GiB (measured [1]), 3352 GB/s (datasheet [2])`. */
export function deviceLines(devices: readonly PlanDevice[], list: SourceList): readonly string[] {
  const names = new Map<string, string[]>();
  for (const { name, memoryBytes, memoryBytesPerNs: rate } of devices) {
    const memory = list.mark(formatBytes(memoryBytes.value), memoryBytes);
    const figures = `${memory}, ${list.mark(`${rate.value} GB/s`, rate)}`;
    names.set(figures, [...(names.get(figures) ?? []), name]);
  }
  return [...names].map(([figures, [first = "", ...others]]) => {
    const last = others.at(-1);
    return `${last === undefined ? first : `${first} … ${last}`}: ${figures}`;
  });
}
