/** GGUF files for tests: a header of plain keys and of tensors whose data all begin at the same place. */

/** A GGUF file, version 3, by the format's documentation; tensors without their data. */
export function writeGguf(
  metadata: Readonly<Record<string, string | number>>,
  tensors: readonly (readonly [name: string, type: number, ...dims: number[]])[],
): Uint8Array {
  const parts: number[] = [];
  const u32 = (n: number) => parts.push(n & 255, (n >> 8) & 255, (n >> 16) & 255, (n >>> 24) & 255);
  const u64 = (n: number) => {
    u32(n);
    u32(0);
  };
  const text = (s: string) => {
    u64(s.length);
    parts.push(...new TextEncoder().encode(s));
  };
  parts.push(...new TextEncoder().encode("GGUF"));
  u32(3);
  u64(tensors.length);
  u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    text(key);
    u32(typeof value === "string" ? 8 : 4);
    if (typeof value === "string") text(value);
    else u32(value);
  }
  for (const [name, type, ...dims] of tensors) {
    text(name);
    u32(dims.length);
    for (const d of dims) u64(d);
    u32(type);
    u64(0);
  }
  return Uint8Array.from([...parts, ...new Uint8Array((32 - (parts.length % 32)) % 32)]);
}
