/**
 * How near whole matrix products come to what the engine makes of their inner loop: ours as WebAssembly
 * against a register tile on operands in the nearest caches (wasm-gemm-tile.ts), interleaved. The tile
 * runs on one thread and does the work of one of ours, so a ratio is the share of the ceiling that each
 * core reaches.
 */
import { Rng } from "../../src/support/rng.ts";
import { randomInputs } from "../models/random-inputs.ts";
import type { Tensors } from "../sessions/session.ts";
import { wavetileRuntime } from "../sessions/wavetile.ts";
import { openWasmTile, tileFlops } from "../wasm-gemm-tile.ts";
import { gemmModel, type Shape } from "./gemm.ts";
import type { ContestCase, Suite } from "./suite.ts";

const shapes = [256, 512, 1024].map((n): Shape => [n, n, n]);

export const ceilingSuite: Suite = {
  name: "ceiling",
  summary:
    "matrix products as WebAssembly: the share of a register tile's rate that each core reaches",
  targets: ["wasm"],
  peers: [],
  load: async ({ threads, target }) => {
    const { name, version } = wavetileRuntime(target, threads);
    return {
      versions: { [name]: version },
      cases: shapes.map((shape) => ceilingCase(shape, target, threads)),
    };
  },
};

function ceilingCase(shape: Shape, target: string, threads: number): ContestCase {
  const [m, n, k] = shape;
  return {
    case: `square/${m}x${n}x${k}`,
    peerName: "register tile",
    open: async () => {
      const { bytes, modelCase } = gemmModel(shape);
      const session = await wavetileRuntime(target, threads).open(bytes);
      const tile = openWasmTile();
      const runs = Math.round((2 * m * n * k) / threads / tileFlops);
      let inputs: Tensors = randomInputs(modelCase, new Rng(0));
      return {
        refresh: (rng) => {
          inputs = randomInputs(modelCase, rng);
        },
        ours: async () => void (await session.run(inputs)),
        peer: async () => {
          for (let i = 0; i < runs; i++) tile();
        },
        // Suite `gemm` compares the product with a peer's; the tile has no result to compare.
        check: async () => undefined,
        close: () => session.release(),
      };
    },
  };
}
