/** Monoids by name and component types, so that the text forms can say which one a fold uses. */
import type { DType } from "../semantics/dtype.ts";
import {
  argMonoid,
  type Monoid,
  onlineSoftmaxMonoid,
  simpleMonoid,
  welfordMonoid,
} from "../semantics/monoids.ts";

type Maker = (dtypes: readonly DType[]) => Monoid;

const simple = (kind: Parameters<typeof simpleMonoid>[0]): Maker => {
  return ([dtype]) => simpleMonoid(kind, dtype!);
};

const arg = (
  kind: "max" | "min",
  tie: "first" | "last",
  nan: "extreme" | "greatest" = "extreme",
): Maker => {
  return ([dtype, index]) =>
    argMonoid({ kind, dtype: dtype!, indexDType: index === "i64" ? "i64" : "i32", tie, nan });
};

const makers: Readonly<Record<string, Maker>> = {
  sum: simple("sum"),
  prod: simple("prod"),
  max: simple("max"),
  min: simple("min"),
  and: simple("and"),
  or: simple("or"),
  argMaxFirst: arg("max", "first"),
  argMaxLast: arg("max", "last"),
  argMinFirst: arg("min", "first"),
  argMinLast: arg("min", "last"),
  argMinFirstNanGreatest: arg("min", "first", "greatest"),
  onlineSoftmax: ([dtype]) => onlineSoftmaxMonoid(dtype!),
  welford: ([dtype]) => welfordMonoid(dtype!),
};

/** Names that `monoidNamed` knows. */
export const monoidNames: readonly string[] = Object.keys(makers);

/** The monoid of that name over components of these types; undefined when there is none. */
export function monoidNamed(name: string, dtypes: readonly DType[]): Monoid | undefined {
  const make = Object.hasOwn(makers, name) ? makers[name] : undefined;
  const monoid = dtypes.length > 0 ? make?.(dtypes) : undefined;
  const fits = monoid?.components.map((c) => c.dtype).join() === dtypes.join();
  return fits ? monoid : undefined;
}
