/**
 * Functions from JavaScript text, for compile-matcher.ts and compile-applier.ts. A text is compiled once
 * for all graphs: the engine's own optimiser then works on it once, which takes a third of the time of
 * a saturation otherwise. The functions get all they work on as arguments, so sharing them shows nowhere
 * but in time.
 */

/** Functions kept; the one whose last use is longest ago goes first. */
export const mostKept = 1024;

const kept = new Map<string, unknown>();

/** The function with these parameters and this body. F: its type. */
export function compileText<F>(parameters: readonly string[], body: string): F {
  const key = `${parameters.join(",")}\n${body}`;
  const compiled = kept.get(key) ?? new Function(...parameters, body);
  kept.delete(key);
  kept.set(key, compiled);
  if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
  return compiled as F;
}

/** Whether functions may be made of text here: a page's content security policy can forbid it. */
export function mayCompile(): boolean {
  try {
    return new Function("return true;")() as boolean;
  } catch (error) {
    if (error instanceof EvalError) return false;
    throw error;
  }
}
