/** Plain text tables: the first column left, the others right, or only those in `right`. */
export function printTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly number[] = head.map((_, i) => i).slice(1),
): string {
  const widths = head.map((h, i) => Math.max(h.length, ...rows.map((r) => r[i]!.length)));
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, i) => (right.includes(i) ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
