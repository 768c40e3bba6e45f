/** What the driver is asked about kernels that are not run, with a driver that answers as the test says. */
import { expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { ok } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { NativeLibrary } from "../ffi/library.ts";
import { CudaDevice } from "./device.ts";
import { CudaDriver } from "./driver.ts";
import { assembleHere } from "./emitted-module.ts";

const text = `program copy for "h200" {
  buffer x : input memory f32 [128] source "x"
  buffer y : output memory f32 [128] source "y"
  kernel main region "copy" {
    grid blocks (b < 1)
    role all copies 1 threads 128 as t {
      store y[t] = load.f32 x[t]
    }
  }
  tasks {
    launch main after previous
  }
}
`;

it("registers and local memory come from the driver, and the device is given back", () => {
  const called: string[] = [];
  let handle = 0n;
  const library: NativeLibrary = {
    bind: (name) => {
      if (name === "cuGetErrorName") return undefined;
      return (...args: readonly unknown[]) => {
        called.push(name);
        // CUfunction_attribute: 4 is registers of a thread, 3 bytes of local memory.
        if (name === "cuFuncGetAttribute")
          (args[0] as Int32Array)[0] = args[1] === 4 ? 37 : args[1] === 3 ? 0 : 1024;
        else for (const cell of args) if (cell instanceof BigUint64Array) cell[0] ||= ++handle;
        return 0;
      };
    },
  };
  const driver = CudaDriver.open("linux", () => ok(library));
  const program = parseProgram(text);
  if (!driver.ok || !program.ok) throw new Error("no driver or no program");
  const cubin = new Map<string, Uint8Array>();
  const store = {
    read: () => new Uint8Array(8),
    write: (key: string, bytes: Uint8Array) => void cubin.set(key, bytes),
  };
  const open = () => CudaDevice.open(driver.value, 0);
  const made = assembleHere(program.value, targets.get("h200")!, { open, store });
  expect(made).toMatchObject({
    ok: true,
    value: [{ kernel: "main", registers: 37, localBytes: 0 }],
  });
  expect(called).toContain("cuModuleLoadData");
  expect(called).toContain("cuModuleUnload");
  expect(called.some((name) => name.startsWith("cuLaunch"))).toBe(false);
  expect(called.at(-1)).toMatch(/Release|Destroy/);
});
