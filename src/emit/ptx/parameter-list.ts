/** The parameters of an entry, declared as the code asks for them: each once, in order of first use. */
import type { Bits } from "./index-scope.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";
import type { PtxParameter, TensorMapParameter } from "./ptx-module.ts";

export class ParameterList {
  readonly #entry: string;
  readonly #code: PtxCode;
  readonly #numbers = new Map<string, number>();
  readonly #list: PtxParameter[] = [];

  constructor(entry: string, code: PtxCode) {
    this.#entry = entry;
    this.#code = code;
  }

  get list(): readonly PtxParameter[] {
    return this.#list;
  }

  declarations(): readonly string[] {
    return this.#list.map((p, i) => {
      const name = this.#nameOf(i);
      if (p.kind === "tensorMap") return `.param .align 64 .b8 ${name}[128]`;
      return `.param .b${p.kind === "index" ? p.bits : 64} ${name}`;
    });
  }

  /** A register with the address that is passed; addresses given to kernels are global. */
  address(parameter: Exclude<PtxParameter, { kind: "index" | "tensorMap" }>): Operand {
    const name = this.#nameOf(this.#numberOf(parameter));
    return this.#code.op("ld.param.b64", "d", `[${name}]`);
  }

  index(name: string, bits: Bits): Operand {
    const number = this.#numberOf({ kind: "index", name, bits });
    return this.#code.op(`ld.param.b${bits}`, bits === 64 ? "d" : "r", `[${this.#nameOf(number)}]`);
  }

  /** A register with the generic address of the descriptor. */
  tensorMap(map: TensorMapParameter): Operand {
    const name = this.#nameOf(this.#numberOf(map));
    return this.#code.op("cvta.param.u64", "d", this.#code.op("mov.b64", "d", name));
  }

  #numberOf(parameter: PtxParameter): number {
    const key = JSON.stringify(parameter);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.#list.length);
    return this.#list.push(parameter) - 1;
  }

  #nameOf(number: number): string {
    return `${this.#entry}_p${number}`;
  }
}
