/** Chains as the compiler chooses them: what is dealt out where extents are known only at run time. */
import { expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { targets } from "../../target/index.ts";

const heads = 12;

/** Attention of `heads` heads over up to eight sequences of up to 256 tokens. */
function attention(): Graph {
  const b = new GraphBuilder("attention");
  const batch = b.symbol("batch", 1, 8);
  const tokens = b.symbol("tokens", 1, 256);
  const [q, k, v] = ["q", "k", "v"].map((name) =>
    b.input(name, tensorType("f32", batch, heads, tokens, 32)),
  );
  const scores = b.matMul(q!, b.transpose(k!, [0, 1, 3, 2]));
  return b.finish([b.matMul(b.node("softmax", [scores], { axis: 3 }), v!)]);
}

it.each(["wasm", "x64-avx2"])(
  "deals out heads, not problems of which there may be one: %s",
  (name) => {
    const target = targets.get(name)!;
    const compiled = compileModel(
      { graph: attention(), weights: noWeights },
      { target, threads: 2 },
    );
    if (!compiled.ok) throw new Error("refused");
    const chains = compiled.value.regions.filter((r) => r.scheduled.region.statements.length > 3);
    expect(chains.length).toBe(1);
    const { region, schedule } = chains[0]!.scheduled;
    const dealt = schedule.directives.find((d) => d.kind === "parallelize")!;
    const extents = region.statements.flatMap((s) =>
      s.loops.filter((l) => s.name === dealt.statement && l.name === dealt.loop),
    );
    expect(extents.map((l) => l.extent.key)).toEqual([String(heads)]);
  },
);
