/** Linear memory for a program: fixed size, shared where threads run, refused with a reason. */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { addressablePages } from "./features.ts";

export const bytesPerPage = 65536;

/** A memory of at least `bytes` bytes, zeroed; its size never changes, so views of it stay valid. */
export function allocateMemory(bytes: number, shared: boolean): Result<WebAssembly.Memory> {
  const pages = Math.max(1, Math.ceil(bytes / bytesPerPage));
  if (pages > addressablePages) {
    const message = `the program needs ${bytes} bytes, WebAssembly addresses ${addressablePages * bytesPerPage}`;
    return fail(
      diagnostic("RUN001", message, {
        help: "use a native target, smaller shapes, or narrower weights (quantize)",
      }),
    );
  }
  try {
    return ok(new WebAssembly.Memory({ initial: pages, maximum: pages, shared }));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return fail(
      diagnostic("RUN002", `the engine refused ${pages} pages of memory: ${error.message}`, {
        help: "free memory or dispose other models; a browser may allow less than Node.js",
      }),
    );
  }
}
