/**
 * Interned names: an operator, a payload (attributes, a constant: any value under a text key) and a
 * head, which is operator, payload and number of children together. A head is one integer, so that a
 * node is a head and its children and comparing nodes is comparing integers. Ids count from 0 in
 * the order of first use; payload 0 is the empty one.
 */
import { invariant } from "../support/invariant.ts";

export type OpId = number;
export type PayloadId = number;
export type HeadId = number;

/** What a caller may give as a payload: a key, with the value that the key stands for. */
export interface Payload {
  /** Equal keys are the same payload: a canonical text of the value. */
  readonly key: string;
  readonly value?: unknown;
}

export class Vocabulary {
  readonly #ops = new Map<string, OpId>();
  readonly #opNames: string[] = [];
  readonly #payloads = new Map<string, PayloadId>([["", 0]]);
  readonly #payloadKeys: string[] = [""];
  readonly #payloadValues: unknown[] = [undefined];
  readonly #heads = new Map<string, HeadId>();
  /** Rows by head id, for compiled code. */
  readonly headOp: OpId[] = [];
  readonly headPayload: PayloadId[] = [];
  readonly headArity: number[] = [];

  op(name: string): OpId {
    const known = this.#ops.get(name);
    if (known !== undefined) return known;
    this.#ops.set(name, this.#opNames.length);
    return this.#opNames.push(name) - 1;
  }

  opName(op: OpId): string {
    const name = this.#opNames[op];
    invariant(name !== undefined, () => `operator ${op} is not interned`);
    return name;
  }

  get opCount(): number {
    return this.#opNames.length;
  }

  payload(payload: Payload | string): PayloadId {
    const { key, value } = typeof payload === "string" ? { key: payload } : payload;
    const known = this.#payloads.get(key);
    if (known !== undefined) return known;
    this.#payloads.set(key, this.#payloadKeys.length);
    this.#payloadValues.push(value ?? key);
    return this.#payloadKeys.push(key) - 1;
  }

  payloadKey(payload: PayloadId): string {
    const key = this.#payloadKeys[payload];
    invariant(key !== undefined, () => `payload ${payload} is not interned`);
    return key;
  }

  /** The value given with the key, or the key itself where none was given. */
  payloadValue(payload: PayloadId): unknown {
    return this.#payloadValues[payload];
  }

  head(op: OpId, payload: PayloadId, arity: number): HeadId {
    const key = `${op} ${payload} ${arity}`;
    const known = this.#heads.get(key);
    if (known !== undefined) return known;
    const head = this.headOp.length;
    this.#heads.set(key, head);
    this.headOp.push(op);
    this.headPayload.push(payload);
    this.headArity.push(arity);
    return head;
  }

  /** `op[payload]` as the text form of patterns spells it. */
  headText(head: HeadId): string {
    const payload = this.headPayload[head]!;
    const name = this.opName(this.headOp[head]!);
    return payload === 0 ? name : `${name}[${JSON.stringify(this.payloadKey(payload))}]`;
  }
}
