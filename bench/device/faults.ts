/**
 * What goes wrong on a device, and what is left of it: memory that runs out, a kernel that does not end, one
 * that reads where it may not, a process that is ended in the middle of a run. Each time the caller lives, the
 * device computes the right thing afterwards, and its free memory is what it was. Candidates run in a child
 * process, as `wavetile optimize` runs them. Ends with `N passed, N failed`.
 * Usage: node faults.mjs ENTRY, where ENTRY is src/runtime/child/entry.ts, bundled.
 */
import { fork } from "node:child_process";
import { parseProgram } from "../../src/program/program-parse.ts";
import { ChildRunner } from "../../src/runtime/child/child-runner.ts";
import type { ChildRequest } from "../../src/runtime/child/protocol.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import type { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { targets } from "../../src/target/index.ts";
import { take } from "./ptx-launch.ts";

const features = take(probeCuda());
const target = targets.get(features.targets[0]!)!;

/** One block of 32 threads, y = x + 1 by default; the scratch has so many bytes. */
function program(body = "store y[t] = add(load.f32 x[t], f32(1))", bytes = 4): string {
  return `program p for "${target.name}" {
    buffer x : input memory f32 [32] source "x"
    buffer y : output memory f32 [32] source "y"
    buffer s : scratch memory u8 [${bytes}]
    kernel k region "r" {
      grid blocks (b < 1)
      role main copies 1 threads 32 as t { ${body} }
    }
    tasks { launch k after previous }
  }`;
}

const endless = program(`for i < 2000000000 { for j < 2000000000 { for l < 2000000000 {
  store y[t] = add(load.f32 y[t], load.f32 x[t]) } } }`);
/** Four terabytes behind the buffer. */
const astray = program("store y[t] = load.f32 x[t + 1000000000000]");

let [passed, failed] = [0, 0];
const [, , entry] = process.argv;
if (entry === "--own") ownFault();
else if (entry !== undefined) await judge(entry);
else {
  console.error("usage: node faults.mjs ENTRY, where ENTRY is src/runtime/child/entry.ts, bundled");
  process.exitCode = 2;
}

function check(what: string, holds: boolean, more = ""): void {
  if (holds) passed++;
  else failed++;
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${more && `: ${more}`}`);
}

async function judge(entry: string): Promise<void> {
  const device = take(features.open());
  console.log(`${device.name}, driver ${features.driverVersion}`);
  const runner = new ChildRunner({ entry });
  const ask = (request: ChildRequest, ms = 60_000) => runner.request(request, ms);
  const load = (text: string): ChildRequest => ({ kind: "load", program: text, id: 1, threads: 1 });
  const fill = { dtype: "f32", seed: 3, phase: 1, sign: "any" } as const;
  const run: ChildRequest = {
    ...{ kind: "run", id: 1, parameters: {} },
    fills: [{ tensor: "x", shape: [32], fill }],
  };
  const works = async (): Promise<boolean> => {
    await ask(load(program()));
    const ran = await ask(run);
    const read = await ask({ kind: "read", id: 1, buffer: "y" });
    await ask({ kind: "unload", id: 1 });
    return (
      ran.kind === "answered" &&
      read.kind === "answered" &&
      read.reply.kind === "bytes" &&
      read.reply.unwritten === undefined
    );
  };
  check("a child computes on the device", await works());
  const far = device.allocate(device.freeBytes() + 2 ** 30);
  check("more memory than there is is refused", !far.ok && far.diagnostics[0]!.code === "CUD003");
  const near = device.allocate(2 ** 20);
  check("what fits is given afterwards", near.ok);
  // It stays with the pool of this process, which the counts below include.
  if (near.ok) device.free(near.value);
  // The child itself holds a context; it is the same before and after.
  const before = device.freeBytes();
  const returned = async (what: string, least = before): Promise<void> => {
    let free = device.freeBytes();
    for (let tries = 0; tries < 50 && free < least; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      free = device.freeBytes();
    }
    check(`${what}: memory is returned`, free >= least, `${least - free} bytes are missing`);
  };
  const after = async (what: string, since: number): Promise<void> => {
    check(`${what}: a fresh child computes`, await works());
    await returned(what);
    const ms = (performance.now() - since).toFixed(0);
    console.log(`     ${what}: ${ms} ms until all was well again`);
  };

  const large = await ask(load(program(undefined, 2 ** 40)));
  check(
    "a program that is larger than the device is refused, the child goes on",
    large.kind === "refused" && (await works()) && runner.generation === 1,
    large.kind === "refused" ? large.diagnostics[0]!.message : large.kind,
  );
  await returned("out of memory");

  let since = performance.now();
  await ask(load(endless));
  const hung = await ask(run, 2000);
  check("a kernel that does not end is ended", hung.kind === "hung", JSON.stringify(hung));
  await after("a kernel that does not end", since);

  since = performance.now();
  await ask(load(astray));
  const lost = await ask(run);
  check("a kernel astray ends its child", lost.kind === "crashed", JSON.stringify(lost));
  await after("a kernel astray", since);

  since = performance.now();
  await ask(load(endless));
  const running = ask(run);
  setTimeout(() => process.kill(runner.processId!, "SIGABRT"), 1000);
  const aborted = await running;
  check("an aborted child is an outcome", aborted.kind === "crashed", JSON.stringify(aborted));
  await after("an aborted child", since);

  // A context that is there while another process comes and goes takes 64 KB more as long as it lives, whether
  // that one fails or not: the driver's own. So the child, whose end is counted too, is ended first.
  await runner.dispose();
  await returned("the child");
  const alone = await settled(device);
  const own = await new Promise<number | null>((resolve) =>
    fork(process.argv[1]!, ["--own"]).on("exit", resolve),
  );
  check("a session whose context is lost says so and closes", own === 0, `exit ${own}`);
  await returned("a session whose context is lost", alone);
  check("nothing is left behind here", device.close() === 0);
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Free bytes once they have been the same for half a second. */
async function settled(device: CudaDevice): Promise<number> {
  for (let free = device.freeBytes(); ; free = device.freeBytes()) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (device.freeBytes() === free) return free;
  }
}

/** The same fault without a child around it: an answer, every time, and no throw at the end. */
function ownFault(): void {
  const open = () =>
    createCudaInstance(take(parseProgram(astray)), target, { device: take(features.open()) });
  const instance = take(open());
  const first = instance.runSync({});
  const second = instance.runSync({});
  instance.dispose();
  const again = features.open();
  for (const outcome of [first, second, again]) {
    console.log(
      `     ${outcome.ok ? "ok" : `${outcome.diagnostics[0]!.message} (${outcome.diagnostics[0]!.help})`}`,
    );
  }
  process.exitCode = !first.ok && !second.ok ? 0 : 1;
}
