import { defineConfig } from "vitest/config";

/** Folders whose code keeps nothing between calls but what the calls themselves decide. */
const pure =
  "{affine,cost,egraph,emit,graph,interp,layers,lower,plan,program,region,rewrite,schedule,search,semantics,support,target,verdict}";

export default defineConfig({
  test: {
    pool: "forks",
    // All cores: by default one is left for who waits.
    maxWorkers: "100%",
    setupFiles: ["test/property-seed.ts"],
    // Hanging, not slow: on a busy machine a test waits for its turn.
    testTimeout: 120_000,
    projects: [
      {
        extends: true,
        // One process for many files: they load the same modules, and code stays warm.
        test: {
          name: "pure",
          isolate: false,
          include: [`src/${pure}/**/*.test.ts`, "test/{differential,golden}/**/*.test.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: ["{src,test,bench,demo,campaign}/**/*.test.ts"],
          exclude: [`src/${pure}/**`, "test/{differential,golden}/**"],
        },
      },
    ],
  },
});
