/** References of randomUniform and randomNormal: the seeded generator of support/, in row-major order. */
import { Rng } from "../../support/rng.ts";
import { elementCount } from "../shape.ts";
import { finish, type Reference } from "./reference.ts";

/** Uniform in [a, b). */
export const randomUniform: Reference<"randomUniform"> = ({ shape, dtype, a, b, seed }) => {
  const rng = new Rng(seed);
  const values = Float64Array.from(
    { length: elementCount(shape) },
    () => a + (b - a) * rng.uniform(),
  );
  return [finish(dtype, shape, values)];
};

/** Normal with mean a and standard deviation b. */
export const randomNormal: Reference<"randomNormal"> = ({ shape, dtype, a, b, seed }) => {
  const rng = new Rng(seed);
  const values = Float64Array.from({ length: elementCount(shape) }, () => a + b * rng.normal());
  return [finish(dtype, shape, values)];
};
