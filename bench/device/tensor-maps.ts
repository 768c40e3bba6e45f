/**
 * Records what cuTensorMapEncodeTiled answers to seeded descriptors: boxes of one to five axes over legal,
 * borderline and illegal extents, strides, alignments and swizzle spans. The answers are the fixture that
 * the legality rules of tensor maps are held to. Usage: node tensor-maps.mjs OUT.json
 */
import { writeFileSync } from "node:fs";
import { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { CudaDriver } from "../../src/runtime/cuda/driver.ts";
import { encodeTensorMap, type TensorMapSpec } from "../../src/runtime/cuda/tensor-map.ts";
import { Rng } from "../../src/support/rng.ts";
import { take } from "./ptx-launch.ts";

const count = 2000;
const seed = 9;
const elementBytes = {
  u8: 1,
  u16: 2,
  u32: 4,
  f16: 2,
  bf16: 2,
  f32: 4,
  tf32: 4,
  u64: 8,
  f64: 8,
} as const;

/** Mostly legal, with one rule bent in about half of the cases. */
function drawSpec(rng: Rng): TensorMapSpec {
  const type = rng.pick(Object.keys(elementBytes) as (keyof typeof elementBytes)[]);
  const size = elementBytes[type];
  const rank = rng.integer(1, 5);
  // Long enough to be borderline, short enough that strides mostly stay below their limit of 2^40.
  const longest = [5000, 4000, 600, 60, 40];
  const dims = Array.from({ length: rank }, (_, axis) => rng.integer(1, longest[axis]!));
  const swizzleBytes = rng.pick([0, 32, 64, 128] as const);
  const span = swizzleBytes === 0 ? 256 * size : swizzleBytes;
  const inner = Math.max(1, Math.min(256, Math.floor(span / size)));
  const step = Math.max(1, 16 / size);
  const box = dims.map((_, axis) =>
    axis === 0
      ? Math.max(step, step * rng.integer(1, Math.max(1, Math.floor(inner / step))))
      : rng.integer(1, rng.pick([8, 64, 256])),
  );
  let pitch = Math.ceil((dims[0]! * size) / 16) * 16;
  const strides = dims.slice(1).map((extent) => {
    const stride = pitch;
    pitch *= extent;
    return stride;
  });
  const spec = {
    type,
    address: 0n,
    dims,
    strides,
    box,
    swizzleBytes,
    l2PromotionBytes: 0,
  } as const;
  return rng.integer(0, 1) === 0 ? spec : bend(spec, rng);
}

function bend(spec: TensorMapSpec, rng: Rng): TensorMapSpec {
  const axis = rng.integer(0, spec.dims.length - 1);
  const change = (list: readonly number[], at: number, value: number): number[] =>
    list.map((old, i) => (i === at ? value : old));
  switch (rng.integer(0, 7)) {
    case 0:
      return { ...spec, address: BigInt(rng.pick([1, 2, 4, 8, 16, 24, 32])) };
    case 1:
      return {
        ...spec,
        dims: change(spec.dims, axis, rng.pick([0, 2 ** 32, 2 ** 32 - 1, 2 ** 32 + 1])),
      };
    case 2:
      return { ...spec, box: change(spec.box, axis, rng.pick([0, 256, 257, 255, 1, 512])) };
    case 3:
      return {
        ...spec,
        strides: change(
          spec.strides,
          rng.integer(0, Math.max(1, spec.strides.length) - 1),
          rng.pick([8, 16, 24, 2 ** 40, 2 ** 40 - 16, 0]),
        ),
      };
    case 4:
      return { ...spec, box: change(spec.box, 0, spec.box[0]! + rng.pick([-1, 1, 2])) };
    case 5:
      return { ...spec, box: change(spec.box, 0, rng.pick([8, 16, 32, 64, 128, 256])) };
    case 6:
      return {
        ...spec,
        elementStrides: change(
          spec.dims.map(() => 1),
          axis,
          rng.pick([0, 1, 2, 8, 9]),
        ),
      };
    default:
      return { ...spec, l2PromotionBytes: rng.pick([64, 128, 256] as const) };
  }
}

const driver = take(CudaDriver.open(process.platform));
const device = take(CudaDevice.open(driver, 0));
const memory = take(device.allocate(1 << 20));
const rng = new Rng(seed);
const cases = Array.from({ length: count }, () => {
  const { address: offset, ...spec } = drawSpec(rng);
  // Only the alignment of the address is kept: where the allocator puts memory is no fact to record.
  const { status, map } = encodeTensorMap(driver, { ...spec, address: memory.address + offset });
  const words = new BigUint64Array(map.slice().buffer);
  words[0] = words[0]! - memory.address;
  return {
    ...spec,
    addressOffset: Number(offset),
    status,
    ...(status === 0 && {
      map: [...words].map((w) => BigInt.asUintN(64, w).toString(16)).join(" "),
    }),
  };
});
device.free(memory);
const leaked = device.close();
const refused = cases.filter((c) => c.status !== 0).length;
writeFileSync(
  process.argv[2] ?? "tensor-maps.json",
  `${JSON.stringify({ device: device.name, driver: driver.version, seed, cases })}\n`,
);
console.log(`${count} cases, ${refused} refused, ${leaked} bytes leaked`);
