import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{src,test,bench,demo,campaign}/**/*.test.ts"],
    pool: "forks",
    testTimeout: 30_000,
  },
});
