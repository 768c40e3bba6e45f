/**
 * Assembles a WebAssembly module (core specification, "Modules"): types, imports, functions, one memory,
 * globals, exports, active and passive data, and the custom "name" section that profilers and stack
 * traces read. Tables and several memories are left out because nothing here needs them.
 * Instructions are function-builder.ts.
 */
import { invariant } from "../../support/invariant.ts";
import { ByteWriter } from "./byte-writer.ts";
import { FunctionBuilder, type FunctionIndex } from "./function-builder.ts";
import { specialOps, type ValueType, valueTypes } from "./opcodes.ts";

/** Limits of a linear memory in pages of 64 KiB. A shared memory must have a maximum. */
export interface MemoryLimits {
  readonly minPages: number;
  readonly maxPages?: number;
  readonly shared?: boolean;
}

export interface FunctionSignature {
  readonly params: readonly ValueType[];
  readonly results: readonly ValueType[];
}

export interface GlobalSpec {
  readonly type: "i32" | "f32" | "f64";
  readonly mutable: boolean;
  readonly initial: number;
}

/** A stretch of the module's bytes and what it was printed from. */
export interface CodeRange {
  readonly functionName: string;
  /** Bytes from the start of the module. */
  readonly start: number;
  readonly end: number;
  readonly subject: string;
}

export interface EncodedModule {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** In order of address; covers only what was marked. */
  readonly map: readonly CodeRange[];
}

interface ImportRow {
  readonly module: string;
  readonly field: string;
  readonly typeIndex: number;
}

type DataRow = { readonly bytes: Uint8Array; readonly address: number | undefined };
type DefinedFunction = { readonly builder: FunctionBuilder; readonly typeIndex: number };

const sectionIds = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  memory: 5,
  global: 6,
  export: 7,
  code: 10,
  data: 11,
  dataCount: 12,
} as const;
const exportKinds = { function: 0, memory: 2, global: 3 } as const;

export class ModuleBuilder {
  readonly #types: FunctionSignature[] = [];
  readonly #typeIndex = new Map<string, number>();
  readonly #imports: ImportRow[] = [];
  readonly #functions: DefinedFunction[] = [];
  readonly #globals: GlobalSpec[] = [];
  readonly #exports: { name: string; kind: number; index: number }[] = [];
  readonly #data: DataRow[] = [];
  #memory: { limits: MemoryLimits; from?: readonly [string, string] } | undefined;

  /** Imports come before every own function, as their indexes do. */
  importFunction(module: string, field: string, signature: FunctionSignature): FunctionIndex {
    invariant(this.#functions.length === 0, () => `import ${field} after a function`);
    this.#imports.push({ module, field, typeIndex: this.#type(signature) });
    return this.#imports.length - 1;
  }

  importMemory(module: string, field: string, limits: MemoryLimits): void {
    invariant(!this.#memory, () => "a module has one memory");
    this.#memory = { limits, from: [module, field] };
  }

  memory(limits: MemoryLimits): void {
    invariant(!this.#memory, () => "a module has one memory");
    this.#memory = { limits };
  }

  exportMemory(name: string): void {
    this.#exports.push({ name, kind: exportKinds.memory, index: 0 });
  }

  global(spec: GlobalSpec): number {
    return this.#globals.push(spec) - 1;
  }

  /** Adds a function; `body` may be called at once, or the returned builder filled later. */
  function(
    name: string,
    signature: FunctionSignature,
    body?: (f: FunctionBuilder) => void,
  ): { readonly index: FunctionIndex; readonly builder: FunctionBuilder } {
    const builder = new FunctionBuilder(name, signature.params, signature.results);
    this.#functions.push({ builder, typeIndex: this.#type(signature) });
    const index = this.#imports.length + this.#functions.length - 1;
    body?.(builder);
    return { index, builder };
  }

  exportFunction(name: string, index: FunctionIndex): void {
    this.#exports.push({ name, kind: exportKinds.function, index });
  }

  exportGlobal(name: string, index: number): void {
    this.#exports.push({ name, kind: exportKinds.global, index });
  }

  /** Bytes copied to `address` at instantiation. */
  activeData(bytes: Uint8Array, address: number): void {
    this.#data.push({ bytes, address });
  }

  /** Bytes for memory.init; returns the segment's index. */
  passiveData(bytes: Uint8Array): number {
    return this.#data.push({ bytes, address: undefined }) - 1;
  }

  encode(): EncodedModule {
    const out = new ByteWriter(4096);
    out.bytes([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    section(out, sectionIds.type, this.#types, writeFunctionType);
    this.#writeImports(out);
    section(out, sectionIds.function, this.#functions, (w, f) => w.u32(f.typeIndex));
    if (this.#memory && !this.#memory.from) {
      section(out, sectionIds.memory, [this.#memory.limits], writeLimits);
    }
    section(out, sectionIds.global, this.#globals, writeGlobal);
    section(out, sectionIds.export, this.#exports, (w, e) => {
      w.name(e.name);
      w.byte(e.kind);
      w.u32(e.index);
    });
    if (this.#data.length > 0) {
      const count = new ByteWriter(8);
      count.u32(this.#data.length);
      out.byte(sectionIds.dataCount);
      out.sized(count);
    }
    const map = this.#writeCode(out);
    section(out, sectionIds.data, this.#data, writeData);
    this.#writeNames(out);
    return { bytes: out.finish(), map };
  }

  #type(signature: FunctionSignature): number {
    const key = `${signature.params.join()}:${signature.results.join()}`;
    const known = this.#typeIndex.get(key);
    if (known !== undefined) return known;
    this.#typeIndex.set(key, this.#types.length);
    return this.#types.push(signature) - 1;
  }

  #writeImports(out: ByteWriter): void {
    const rows: ((w: ByteWriter) => void)[] = this.#imports.map((row) => (w) => {
      w.name(row.module);
      w.name(row.field);
      w.byte(exportKinds.function);
      w.u32(row.typeIndex);
    });
    const memory = this.#memory;
    if (memory?.from) {
      const [module, field] = memory.from;
      rows.push((w) => {
        w.name(module);
        w.name(field);
        w.byte(exportKinds.memory);
        writeLimits(w, memory.limits);
      });
    }
    section(out, sectionIds.import, rows, (w, row) => row(w));
  }

  /** Writes the code section and returns where in the module each marked stretch ended up. */
  #writeCode(out: ByteWriter): CodeRange[] {
    if (this.#functions.length === 0) return [];
    const content = new ByteWriter(65536);
    const ranges: CodeRange[] = [];
    content.u32(this.#functions.length);
    for (const { builder } of this.#functions) {
      const { entry, start } = builder.finish();
      content.sized(entry);
      const base = content.length - entry.length + start;
      builder.marks.forEach((mark, i) => {
        const next = builder.marks[i + 1];
        ranges.push({
          functionName: builder.name,
          start: base + mark.offset,
          end: next ? base + next.offset : content.length,
          subject: mark.subject,
        });
      });
    }
    out.byte(sectionIds.code);
    out.u32(content.length);
    const origin = out.length;
    out.append(content);
    return ranges.map((r) => ({ ...r, start: r.start + origin, end: r.end + origin }));
  }

  /** The custom section "name", subsection 1 (function names). */
  #writeNames(out: ByteWriter): void {
    const names = new ByteWriter(1024);
    names.u32(this.#imports.length + this.#functions.length);
    this.#imports.forEach((row, i) => {
      names.u32(i);
      names.name(`${row.module}.${row.field}`);
    });
    this.#functions.forEach(({ builder }, i) => {
      names.u32(this.#imports.length + i);
      names.name(builder.name);
    });
    const content = new ByteWriter(names.length + 16);
    content.name("name");
    content.byte(1);
    content.sized(names);
    out.byte(sectionIds.custom);
    out.sized(content);
  }
}

function section<T>(
  out: ByteWriter,
  id: number,
  rows: readonly T[],
  write: (w: ByteWriter, row: T) => void,
): void {
  if (rows.length === 0) return;
  const content = new ByteWriter(1024);
  content.u32(rows.length);
  for (const row of rows) write(content, row);
  out.byte(id);
  out.sized(content);
}

function writeFunctionType(w: ByteWriter, signature: FunctionSignature): void {
  w.byte(0x60);
  for (const types of [signature.params, signature.results]) {
    w.u32(types.length);
    for (const type of types) w.byte(valueTypes[type]);
  }
}

function writeLimits(w: ByteWriter, limits: MemoryLimits): void {
  const { minPages, maxPages, shared } = limits;
  invariant(!shared || maxPages !== undefined, () => "a shared memory needs a maximum");
  w.byte((maxPages === undefined ? 0 : 1) | (shared ? 2 : 0));
  w.u32(minPages);
  if (maxPages !== undefined) w.u32(maxPages);
}

function writeGlobal(w: ByteWriter, spec: GlobalSpec): void {
  w.byte(valueTypes[spec.type]);
  w.byte(spec.mutable ? 1 : 0);
  w.byte(specialOps[`${spec.type}.const`]);
  w[spec.type === "i32" ? "s32" : spec.type](spec.initial);
  w.byte(specialOps.end);
}

function writeData(w: ByteWriter, row: DataRow): void {
  if (row.address === undefined) w.u32(1);
  else {
    w.u32(0);
    w.byte(specialOps["i32.const"]);
    w.s32(row.address);
    w.byte(specialOps.end);
  }
  w.u32(row.bytes.length);
  w.bytes(row.bytes);
}
