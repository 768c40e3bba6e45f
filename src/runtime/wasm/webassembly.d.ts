/**
 * The part of the WebAssembly JavaScript interface that Wavetile uses. TypeScript declares it only in
 * the DOM library and Node's types leave it out; the DOM library would bring a browser's globals along.
 */
declare namespace WebAssembly {
  interface MemoryDescriptor {
    initial: number;
    maximum?: number;
    shared?: boolean;
  }
  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
    grow(pages: number): number;
  }
  class Module {
    constructor(bytes: ArrayBufferView | ArrayBuffer);
  }
  class Instance {
    constructor(module: Module, imports?: Record<string, Record<string, unknown>>);
    readonly exports: Record<string, unknown>;
  }
  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}
  function validate(bytes: ArrayBufferView | ArrayBuffer): boolean;
  function compile(bytes: ArrayBufferView | ArrayBuffer): Promise<Module>;
}
