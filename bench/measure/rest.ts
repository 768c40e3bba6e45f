/**
 * The rest before a turn of a side that runs on several threads. The threads of a runtime go on polling for a while
 * after a run, in case the next one comes at once: onnxruntime-web's for 27 to 30 ms of processor time a thread,
 * with no setting that ends it (`session.force_spinning_stop`, which onnxruntime-node gets, changes nothing there);
 * ours for a tenth of a millisecond. Where threads are as many as cores, what polls has the core that the other side's
 * next run is given, and the time that is measured is that of a busy machine. So every turn of either side begins with
 * threads that sleep: after twice the longest of these, and where others use the machine too and polling takes
 * longer for it, when this process has used no processor for a while.
 */
import { setTimeout as pause } from "node:timers/promises";

export const restMilliseconds = 60;
/** How long the process has to idle, and the share of that time that timers and the like may use. */
const [idleMilliseconds, idleShare] = [10, 0.2];
/** What polls for longer than this polls for ever. */
const longestMilliseconds = 2000;

/** What rests before a turn of so many threads; nothing polls where there is one. */
export function restFor(threads: number): (() => Promise<void>) | undefined {
  return threads === 1 ? undefined : rest;
}

async function rest(): Promise<void> {
  const start = performance.now();
  await pause(restMilliseconds);
  while (performance.now() - start < longestMilliseconds) {
    const before = process.cpuUsage();
    await pause(idleMilliseconds);
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1e3 < idleShare * idleMilliseconds) return;
  }
}
