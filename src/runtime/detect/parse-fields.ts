/** Reading `key : value` lines and lists of CPU numbers, which most of these texts are made of. */

/** The fields of a block of `key<separator>value` lines; a key that repeats keeps its first value. */
export function parseFields(text: string, separator = ":"): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const at = line.indexOf(separator);
    if (at < 0) continue;
    const key = line.slice(0, at).trim();
    if (key !== "" && !fields.has(key)) fields.set(key, line.slice(at + separator.length).trim());
  }
  return fields;
}

/** A whole number at the start of a text (`304`, `4096(0x1000) KB`); undefined when there is none. */
export function leadingInteger(text: string | undefined): number | undefined {
  const match = /^\s*(\d{1,15})(?![\d.])/.exec(text ?? "");
  return match ? Number(match[1]) : undefined;
}

export function leadingNumber(text: string | undefined): number | undefined {
  const match = /^\s*(\d{1,15}(?:\.\d+)?)/.exec(text ?? "");
  return match ? Number(match[1]) : undefined;
}

const units: Readonly<Record<string, number>> = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

/** `32K`, `1024 KB`, `16 GB`, `24684096 kB` in bytes. */
export function parseSize(text: string | undefined): number | undefined {
  const match = /^\s*(\d{1,15}(?:\.\d+)?)(?:\(0x[\da-f]+\))?\s*([KMG]?)(?:i?B)?\s*$/i.exec(
    text ?? "",
  );
  if (!match) return undefined;
  return Math.round(Number(match[1]) * units[match[2]!.toUpperCase()]!);
}

/** The CPUs that a kernel list names: `0-3,8` has five. Undefined for what is no such list. */
export function readCpuList(text: string): readonly number[] | undefined {
  const cpus: number[] = [];
  for (const part of text.trim().split(",")) {
    const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
    if (!match) return undefined;
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
    for (let cpu = from; cpu <= to; cpu++) cpus.push(cpu);
  }
  return cpus.length > 0 ? cpus : undefined;
}

export function countCpuList(text: string): number | undefined {
  return readCpuList(text)?.length;
}
