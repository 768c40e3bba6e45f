/** Nanoseconds that this process's threads spent on a call, whatever else the machine does. */
export function processorNs(run: () => unknown): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) * 1000;
}
