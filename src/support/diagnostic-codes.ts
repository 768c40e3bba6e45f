/**
 * Every diagnostic code with its title. A code is never reused or renumbered. Adding one means a row
 * here, a section in docs/error-codes.md and a test that provokes it (test/tidy.test.ts checks both).
 * Prefixes: ONX import, GRF graph, SHP shapes, AFF affine, REG region, SCH schedule, PRG program,
 * MEM memory plan, EMT emitter, RUN runtime, ART artifact, VER verdict, CLI command line, STO store.
 */
export const diagnosticCodes = {
  TXT001: "text form does not parse",
} as const satisfies Record<string, string>;

export type DiagnosticCode = keyof typeof diagnosticCodes;
