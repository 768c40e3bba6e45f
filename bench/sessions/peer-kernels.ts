/** Models that a peer has no kernels for, such as those in bf16 on processors: nothing to compare with. */

const lacking = /find an implementation|bfloat16/;

/** Whether a peer refused a model for the types of its elements. */
export function lacksKernels(error: unknown): boolean {
  return error instanceof Error && lacking.test(error.message);
}

/** Why such a model is skipped. */
export function noKernels(peer: string, model: string): string {
  return `${peer} has no kernels for the types of ${model}`;
}

/** Ends the opening of a case that has no peer. */
export class PeerLacksKernels extends Error {
  constructor(peer: string, model: string) {
    super(noKernels(peer, model));
    this.name = "PeerLacksKernels";
  }
}
