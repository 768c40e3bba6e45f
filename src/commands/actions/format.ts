/** Numbers as people read them. */

const steps = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** `15.0 GiB`: three digits, binary units. */
export function formatBytes(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(steps.length - 1, Math.floor(Math.log2(bytes) / 10));
  const scaled = bytes / 1024 ** step;
  return `${step === 0 ? scaled : scaled.toFixed(scaled < 10 ? 2 : 1)} ${steps[step]}`;
}

/** Nanoseconds in the unit that suits them. */
export function formatTime(ns: number): string {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(2)} ms`;
  return ns >= 1e3 ? `${(ns / 1e3).toFixed(2)} µs` : `${ns.toFixed(0)} ns`;
}
