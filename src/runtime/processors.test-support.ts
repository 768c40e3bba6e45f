/** Processors of this machine for tests, where the system lets a thread be told where to run: some sandboxes refuse. */
import { openProcessors, type Processors } from "./ffi/processors.ts";

export function obeyingProcessors(): Processors | undefined {
  const processors = openProcessors();
  const allowed = processors?.allowed();
  // Nothing changes for the thread: it may run there already.
  return allowed && processors?.restrict(process.pid, allowed) ? processors : undefined;
}
