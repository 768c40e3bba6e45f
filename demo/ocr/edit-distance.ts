/** Levenshtein's edit distance, by which recognised text is compared with what a person reads. */

/** Fewest insertions, deletions and replacements of characters that turn a into b. */
export function editDistance(a: string, b: string): number {
  const from = [...a];
  const to = [...b];
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (const [i, character] of from.entries()) {
    const next = [i + 1];
    for (const [j, other] of to.entries()) {
      const replaced = row[j]! + (character === other ? 0 : 1);
      next.push(Math.min(replaced, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}

/** Edits per expected character; full-width punctuation counts as its ASCII form. */
export function errorShare(found: readonly string[], expected: readonly string[]): number {
  const truth = expected.join("\n");
  return editDistance(found.join("\n").normalize("NFKC"), truth) / truth.length;
}
