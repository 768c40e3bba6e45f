/**
 * torch in a Python process as a peer: it answers one line for each line that it is sent, so only one of the
 * two has work on the device at a time, and each times its own batches by events.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface PeerAnswer {
  /** Of one run. */
  readonly ms?: number;
  readonly error?: string;
}

/** @param text Python that defines `prepare(m)`, which gives a function to be timed, for a message of op `case` */
export class TorchPeer {
  readonly #child;
  readonly #lines;

  constructor(text: string, python = "python3") {
    this.#child = spawn(python, ["-c", text + answering], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Prepares a case: later batches are of it. */
  prepare(message: object): Promise<PeerAnswer> {
    return this.#ask({ op: "case", ...message });
  }

  /** Times a batch of runs. */
  async time(runs: number): Promise<number> {
    const { ms, error } = await this.#ask({ op: "time", runs });
    if (ms === undefined) throw new Error(`peer: ${error}`);
    return ms;
  }

  async #ask(message: object): Promise<PeerAnswer> {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error("the peer ended");
      // Compilers print what they like.
      if (value.startsWith("{")) return JSON.parse(value) as PeerAnswer;
    }
  }

  end(): void {
    this.#child.stdin.end();
  }
}

const answering = `
import json, sys
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
run = None
for line in sys.stdin:
    m = json.loads(line)
    try:
        if m["op"] == "case":
            run = None
            torch.cuda.empty_cache()
            run = prepare(m)
            torch.cuda.synchronize()
            answer = {"torch": torch.__version__}
        else:
            start.record()
            for _ in range(m["runs"]): run()
            end.record()
            torch.cuda.synchronize()
            answer = {"ms": start.elapsed_time(end) / m["runs"]}
    except Exception as e:
        answer = {"error": str(e)[:300]}
    print(json.dumps(answer), flush=True)
`;
