/** `wavetile export`: its arguments; the work is in actions/export-onnx.ts. */
import { z } from "zod";
import { argument, command, shared } from "./command.ts";

export const exportModel = command({
  name: "export",
  summary: "write the rewritten graph as an ONNX model, for use elsewhere",
  args: z.strictObject({
    model: shared.model,
    onnx: argument(z.string(), {
      description: "the model to write; weights beyond 2 GiB lie beside it in OUT.onnx.data",
      value: "OUT.onnx",
    }),
    rewrite: argument(z.enum(["on", "off"]).default("on"), {
      description: "whether the graph is rewritten first, by the prices of the target",
      value: "on|off",
    }),
    rules: shared.rules,
    target: shared.target,
    shape: shared.shape,
    value: shared.value,
  }),
  load: async () => (await import("./actions/export-onnx.ts")).exportAction,
});
