/**
 * The rest before a turn of a side that runs on several threads. The threads of a runtime go on polling for a while
 * after a run, in case the next one comes at once: onnxruntime-web's for 27 to 30 ms of processor time a thread,
 * with no setting that ends it (`session.force_spinning_stop`, which onnxruntime-node gets, changes nothing there);
 * ours for a tenth of a millisecond. Where threads are as many as cores, what polls has the core that the other side's
 * next run is given, and the time that is measured is that of a busy machine. Twice the longest of these is rested
 * before every turn of either side, so that both begin with threads that sleep. A turn of short runs repeats
 * them, both sides equally often, and pays for waking threads once.
 */

export const restMilliseconds = 60;

/** What rests before a turn of so many threads; nothing polls where there is one. */
export function restFor(threads: number): (() => Promise<void>) | undefined {
  if (threads === 1) return undefined;
  return () => new Promise((resolve) => setTimeout(resolve, restMilliseconds));
}
