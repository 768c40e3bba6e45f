/**
 * Names of a kernel's own buffers and counters, which are those of nothing else in the program, whatever its
 * tensors are called. While a kernel is made, its own buffers bear a mark that no tensor's name can have, so
 * that each access says what it means; then each gets its plain name, or where that is taken, the first of
 * `name.1`, `name.2`, … that is free.
 */
import type { Kernel } from "../program/program.ts";
import { renameStorage, type StorageNames } from "../program/walk.ts";
import { buffersOf } from "./task-uses.ts";

/** No name of the text forms begins so. */
const mark = "@";

/** What a buffer of the kernel's own is called until the kernel is whole. */
export function ownName(plain: string): string {
  return mark + plain;
}

function plainName(name: string): string {
  return name.startsWith(mark) ? name.slice(mark.length) : name;
}

/** Names of tensors or buffers. */
export interface NameSet {
  has(name: string): boolean;
}

/**
 * The kernel with its own buffers and counters apart from all names of `others` and from all that it finds in
 * memory; the kernel itself where they are so already.
 */
export function nameApart(kernel: Kernel, others: NameSet): Kernel {
  const own = [kernel.buffers, kernel.counters].map((list) => list.map((b) => b.name));
  const names = own.flat();
  if (!names.some((name) => name.startsWith(mark) || others.has(name))) return kernel;
  const [mine, plain] = [new Set(names), new Set(names.map(plainName))];
  // Views and packed forms of tensors are known by their use alone.
  const touched = [...buffersOf(kernel.roles.flatMap((r) => r.body))];
  const used = new Set(touched.filter((name) => !mine.has(name)));
  const isTaken = (name: string): boolean => others.has(name) || used.has(name);
  const choose = (name: string): string => {
    const first = plainName(name);
    if (!isTaken(first)) return first;
    for (let number = 1; ; number++) {
      const next = `${first}.${number}`;
      if (isTaken(next) || plain.has(next)) continue;
      used.add(next);
      return next;
    }
  };
  const [buffers, counters] = own.map((list) => new Map(list.map((n) => [n, choose(n)] as const)));
  return renameKernel(kernel, { buffers: buffers!, counters: counters! });
}

function renameKernel(kernel: Kernel, names: StorageNames): Kernel {
  const { buffers, counters } = names;
  return {
    ...kernel,
    buffers: kernel.buffers.map((b) => ({ ...b, name: buffers.get(b.name)! })),
    counters: kernel.counters.map((c) => ({ ...c, name: counters.get(c.name)! })),
    roles: kernel.roles.map((r) => ({ ...r, body: renameStorage(r.body, names) })),
  };
}
