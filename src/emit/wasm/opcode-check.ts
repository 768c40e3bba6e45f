/**
 * For tests: a module with one function a row of the opcode table, named by the mnemonic, so that an
 * independent judge can validate the encoding and say which instruction it reads there.
 */
import type { FunctionBuilder } from "./function-builder.ts";
import { ModuleBuilder } from "./module-builder.ts";
import {
  type LaneOp,
  laneOps,
  type MemoryLaneOp,
  type MemoryOp,
  memoryLaneOps,
  memoryOps,
  type PlainOp,
  plainOps,
  type ValueType,
} from "./opcodes.ts";

const letters: Record<string, ValueType> = { i: "i32", l: "i64", f: "f32", d: "f64", v: "v128" };

export interface OpcodeRow {
  readonly name: string;
  readonly opcode: number;
  readonly signature: string;
  readonly write: (f: FunctionBuilder) => void;
}

/** Every row of the four tables with a way to write it (lane 1, offset 8 where it takes them). */
export function opcodeRows(): OpcodeRow[] {
  const plain = Object.entries(plainOps).map(([name, [opcode, signature]]) => {
    return { name, opcode, signature, write: (f: FunctionBuilder) => f.op(name as PlainOp) };
  });
  const memory = Object.entries(memoryOps).map(([name, [opcode, signature]]) => {
    const write = (f: FunctionBuilder) => f.memory(name as MemoryOp, 8);
    return { name, opcode, signature, write };
  });
  const lane = Object.entries(laneOps).map(([name, [opcode, signature]]) => {
    return { name, opcode, signature, write: (f: FunctionBuilder) => f.lane(name as LaneOp, 1) };
  });
  const memoryLane = Object.entries(memoryLaneOps).map(([name, [opcode, signature]]) => {
    const write = (f: FunctionBuilder) => f.memoryLane(name as MemoryLaneOp, 1, 8);
    return { name, opcode, signature, write };
  });
  return [...plain, ...memory, ...lane, ...memoryLane];
}

/** A module over shared memory with an exported function for each row that takes and gives its types. */
export function moduleOfRows(rows: readonly OpcodeRow[]): Uint8Array<ArrayBuffer> {
  const module = new ModuleBuilder();
  module.memory({ minPages: 1, maxPages: 1, shared: true });
  for (const row of rows) {
    const [params, results] = row.signature
      .split(":")
      .map((part) => [...part].map((letter) => letters[letter]!));
    const { index } = module.function(row.name, { params: params!, results: results! }, (f) => {
      for (const param of f.params) f.get(param);
      row.write(f);
    });
    module.exportFunction(row.name, index);
  }
  return module.encode().bytes;
}
