/** A command line run within the test's process, with what it printed. */
import { runCommandLine } from "./command-line.ts";

export interface Captured {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

/** Time stands still unless a clock is given; the environment is empty. */
export async function runCaptured(
  argv: readonly string[],
  now: () => number = () => 0,
): Promise<Captured> {
  let [out, err] = ["", ""];
  const exit = await runCommandLine([...argv], {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    environment: {},
    now,
    onInterrupt: () => {},
  });
  return { exit, out, err };
}
