/**
 * How a change of the computation may change its numbers: `exact` not at all, `reassociates` like
 * another order of the same floating-point operations, `approximates` beyond that (needs a bound).
 */
export type NumericClass = "exact" | "reassociates" | "approximates";
