/** Arguments that several planning commands share. */
import { z } from "zod";
import { argument } from "../command.ts";

export const planShared = {
  device: argument(z.array(z.string()).default(["auto"]), {
    description: "a target, a target file, or auto for this machine; NAME:COUNT (repeatable)",
    value: "NAME[:N]",
  }),
} as const;
