/** Which tensors a nest program names, and the program without what nobody asks for. */
import type { NestItem, NestProgram } from "./nest.ts";

/** Every tensor that an item names. */
export function itemTensors(item: NestItem): readonly string[] {
  switch (item.kind) {
    case "view":
      return [item.view.tensor, item.view.of];
    case "routine":
      return [...item.routine.reads, ...item.routine.writes];
    case "statement": {
      const { reads, finishReads, indirects, writes } = item.statement;
      const accesses = [...reads, ...finishReads, ...indirects.map((v) => v.access)];
      return [...accesses.map((a) => a.tensor), ...writes.map((w) => w.tensor)];
    }
  }
}

/** Drops views that nobody reads and tensors that nothing names. */
export function pruneProgram(program: NestProgram): NestProgram {
  const wanted = new Set<string>(program.outputs);
  const items: NestItem[] = [];
  for (const item of [...program.items].reverse()) {
    if (item.kind === "view" && !wanted.has(item.view.tensor)) continue;
    for (const tensor of itemTensors(item)) wanted.add(tensor);
    items.push(item);
  }
  for (const input of program.inputs) wanted.add(input);
  const tensors = new Map([...program.tensors].filter(([name]) => wanted.has(name)));
  return { ...program, items: items.reverse(), tensors };
}
