import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { randomGraph } from "../../../campaign/random-graph.ts";
import { sampleModels } from "../../../test/golden/sample-models.ts";
import { parseShapes } from "../../commands/library/load.ts";
import { openModel } from "../../commands/library/open-model.ts";
import { compileModel } from "../../compile.ts";
import { noWeights } from "../../interp/graph.ts";
import type { Program } from "../../program/program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { emitX64, type X64Program } from "./emit-program.ts";
import type { System } from "./thread-code.ts";
import { leaksOf } from "./upper-halves.test-support.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

const names = ["x64-avx2", "x64-avx512-vnni"] as const;
const systems: readonly System[] = ["linux", "windows", "other"];

function emit(program: Program, target: string, system: System): X64Program {
  const evex = targets.get(target)!.vectorBytes === 64;
  const features = { evex, vectorBits: evex ? 512 : 256 } as const;
  return unwrap(emitX64(program, { features, system }));
}

function expectNoLeaks(program: Program, target: string): void {
  for (const system of systems) expect(leaksOf(emit(program, target, system))).toEqual([]);
}

/** Whole vectors before and behind calls of the C library, in two launches that meet at a barrier or are claimed. */
const calling = (lanes: number, meets: boolean): Program =>
  unwrap(
    parseProgram(`program p for "x64" {
  buffer x : input memory f32 [64] source "x"
  buffer t : scratch memory f32 [64]
  buffer y : output memory f32 [64] source "y"
  kernel first region "first" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < ${64 / lanes} over th {
        let v = add(load.f32x${lanes} x[i * ${lanes}], f32x${lanes}(${meets ? 2 : 1}))
        store t[i * ${lanes}] = pow(v, f32x${lanes}(1.5))
      }
    }
  }
  kernel second region "second" {
    grid threads (th < threads)
    role main copies 1 threads 1 {
      for i < ${64 / lanes} over th {
        store y[i * ${lanes}] = mul(load.f32x${lanes} t[${meets ? `64 - ${lanes} - ` : ""}i * ${lanes}], f32x${lanes}(2))
        ${meets ? "store y[i] = cast.f32.wrap(index.i32(th))" : ""}
      }
    }
  }
  tasks {
    launch first after previous
    launch second after previous
  }
}`),
  );

describe("upper halves of vector registers", () => {
  it.each(names.flatMap((target) => sampleModels.map((m) => [m.name, target, m] as const)))(
    "are given up before calls and returns: %s on %s",
    (_, target, { bytes, shapes, states }) => {
      const opened = unwrap(
        openModel(
          { bytes: bytes() },
          {
            target,
            portable: false,
            seed: 0,
            shapes: unwrap(parseShapes(shapes)),
            ...(states && { states }),
          },
        ),
      );
      expectNoLeaks(opened.code.program, target);
    },
  );

  it.each(names)("are given up in random programs on %s", (name) => {
    for (let seed = 0; seed < 30; seed++) {
      const model = { graph: randomGraph(seed).graph, weights: noWeights };
      expectNoLeaks(unwrap(compileModel(model, { target: targets.get(name)! })).plan.program, name);
    }
  });

  it("are given up in the golden program for threads", () => {
    const place = new URL("../../../test/golden/program/matmul-bias-relu-cpu.txt", import.meta.url);
    expectNoLeaks(unwrap(parseProgram(readFileSync(place, "utf8"))), "x64-avx512-vnni");
  });

  it.each(
    systems.flatMap((system) =>
      [true, false].flatMap((meets) => [8, 16].map((lanes) => [system, meets, lanes] as const)),
    ),
  )("a forgotten vzeroupper is seen: %s, barriers %s, %s lanes", (system, meets, lanes) => {
    const emitted = emit(calling(lanes, meets), names[lanes === 8 ? 0 : 1], system);
    expect(leaksOf(emitted)).toEqual([]);
    const lines = emitted.code.text().split("\n");
    const found: string[] = [];
    lines.forEach((line, i) => {
      if (!line.endsWith("vzeroupper")) return;
      const at = Number.parseInt(line.trim(), 16);
      const { name } = emitted.code.functions.find((f) => f.start <= at && at < f.end)!;
      const without = lines.map((l, j) => (i === j ? l.replace("vzeroupper", "nop") : l));
      const leaks = leaksOf(emitted, without.join("\n"));
      // Nothing before the end of `quit` touches vectors.
      expect(leaks.length > 0, `${name}: ${line}`).toBe(name !== "quit");
      found.push(name);
    });
    const waits = meets ? ["barrier"] : ["settle"];
    const yields = system === "linux" ? [] : waits;
    expect(new Set(found)).toEqual(
      new Set(["first", ...yields, "enter", "dispatch", "work", "quit"]),
    );
  });
});
