/** Arguments that several planning commands share. */
import { z } from "zod";
import { argument } from "../command.ts";

export const planShared = {
  device: argument(z.array(z.string()).default(["auto"]), {
    description: "a target, a target file, or auto for this machine; NAME:COUNT (repeatable)",
    value: "NAME[:N]",
  }),
  context: argument(z.coerce.number().default(4096), {
    description: "tokens of prompt and answer together",
    value: "N",
  }),
  batch: argument(z.coerce.number().default(1), { description: "sequences at once", value: "N" }),
  kvBits: argument(z.coerce.number().default(16), {
    description: "bits of a value in the KV cache",
    value: "N",
  }),
} as const;
