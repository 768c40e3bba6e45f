import { defineConfig } from "vitest/config";

/** Folders whose code keeps nothing between calls but what the calls themselves decide. */
const shared = [
  "src/{affine,artifact,cost,egraph,emit,frontend,graph,interp,layers,lower,plan,program}/**/*.test.ts",
  "src/{region,report,rewrite,schedule,search,semantics,store,support,target,verdict}/**/*.test.ts",
  "src/commands/**/*.test.ts",
  "src/{code-price,compile,compile-parts}.test.ts",
  "test/{differential,golden,fuzz}/**/*.test.ts",
  "{bench,campaign,demo}/**/*.test.ts",
];

export default defineConfig({
  test: {
    pool: "forks",
    // All cores: by default one is left for who waits.
    maxWorkers: "100%",
    setupFiles: ["test/property-seed.ts", "test/turns.ts"],
    // Hanging, not slow: on a busy machine a test waits for its turn.
    testTimeout: 120_000,
    projects: [
      {
        extends: true,
        // One process for many files: they load the same modules, and code stays warm.
        test: { name: "shared", isolate: false, include: shared },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: ["{src,test,bench,demo,campaign}/**/*.test.ts"],
          exclude: shared,
        },
      },
    ],
  },
});
