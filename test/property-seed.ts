/**
 * The seed of all property tests, so that a run can be repeated; `.ci/run` gives another one for every commit.
 */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });
