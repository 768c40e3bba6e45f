import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{src,test,bench,demo,campaign}/**/*.test.ts"],
    pool: "forks",
    // All cores: by default one is left for who waits.
    maxWorkers: "100%",
    setupFiles: ["test/property-seed.ts"],
    // Hanging, not slow: on a busy machine a test waits for its turn.
    testTimeout: 120_000,
  },
});
