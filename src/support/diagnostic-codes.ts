/**
 * Every diagnostic code with its title. A code is never reused or renumbered. Adding one means a row
 * here, a section in docs/error-codes.md and a test that provokes it (test/tidy.test.ts checks both).
 * Prefixes: ONX import, GRF graph, SHP shapes, AFF affine, REG region, SCH schedule, PRG program,
 * MEM memory plan, EMT emitter, RUN runtime, ART artifact, VER verdict, CLI command line, STO store,
 * SEM semantics, FET models of other packages (bench).
 */
export const diagnosticCodes = {
  ONX001: "not an ONNX model",
  ONX002: "model beyond the limits of the reader",
  ONX003: "element type is not supported",
  ONX004: "shape of a tensor is not valid",
  ONX005: "contents of a tensor do not fit its type and shape",
  ONX006: "external data location is not allowed",
  FET001: "package cannot be downloaded",
  FET002: "package archive is not the expected one",
  FET003: "package archive cannot be read",
  FET004: "package has no such file",
  TXT001: "text form does not parse",
  SCH001: "unknown statement in a schedule",
  SCH002: "unknown loop in a schedule",
  SCH003: "factor or depth is not usable",
  SCH004: "loop name is taken",
  SCH005: "order does not name every loop once",
  SCH006: "loop extent is not a constant",
  SCH007: "second vector loop",
  SCH008: "a scan loop cannot run in lanes",
  SCH009: "loop has a mode already",
  SCH010: "statement cannot be fused there",
  SCH011: "unknown tensor in a schedule",
  SCH012: "fused loops do not match",
  SCH013: "tile has no constant size",
  SCH014: "target has no asynchronous copies",
  RUN001: "program exceeds the address space",
  RUN002: "memory refused by the engine",
  RUN003: "compute thread failed",
  RUN004: "run cancelled",
  RUN005: "compute thread stalled",
  RUN006: "index out of range at run time",
  RUN007: "too many trips of a loop",
  SEM001: "index out of range",
  AFF001: "not an affine expression",
  AFF002: "integer out of range",
  AFF003: "unsupported set notation",
} as const satisfies Record<string, string>;

export type DiagnosticCode = keyof typeof diagnosticCodes;
