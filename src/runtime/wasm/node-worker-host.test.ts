import { describe, expect, it } from "vitest";
import { nodeWorkerHost } from "./node-worker-host.ts";

/** What the host says about a worker that runs `source`. */
function death(source: string): Promise<string> {
  return new Promise((died) => {
    nodeWorkerHost.spawn(source, "doomed", { message: () => undefined, died }).keepAlive(true);
  });
}

describe("nodeWorkerHost", () => {
  it("says when a worker exits or throws, once", async () => {
    expect(await death("(() => process.exit(3))")).toBe("exit code 3");
    expect(await death("(() => { throw new Error('out of luck'); })")).toBe("out of luck");
  });

  it("is silent about a worker that was told to end", async () => {
    let said: string | undefined;
    const handle = nodeWorkerHost.spawn("((port) => port.listen(() => {}))", "idle", {
      message: () => undefined,
      died: (reason) => {
        said = reason;
      },
    });
    await handle.terminate();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(said).toBeUndefined();
  });
});
