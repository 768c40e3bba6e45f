/**
 * The faults of the `mutants` campaign, as data: in which file, what text becomes what, which tests
 * have to notice, and what is wrong then. The old text must occur exactly once. Campaign and runs are
 * in campaigns/mutants.ts.
 */

export interface PlantedFault {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Test files or folders that must fail. */
  readonly tests: readonly string[];
  readonly what: string;
}

/** The source with the fault; an error unless its text occurs exactly once. */
export function plant(source: string, { file, from, to }: PlantedFault): string {
  const times = source.split(from).length - 1;
  if (times !== 1) throw new Error(`${file}: ${JSON.stringify(from)} occurs ${times} times`);
  return source.replace(from, () => to);
}

type Row = readonly [from: string, to: string, what: string];

function inFile(file: string, tests: readonly string[], rows: readonly Row[]): PlantedFault[] {
  return rows.map(([from, to, what]) => ({ file, from, to, tests, what }));
}

const lowering = ["test/differential/lowering.test.ts", "test/differential/directives.test.ts"];
const plans = [
  "src/lower/memory-plan.test.ts",
  "src/lower/check-reuse.test.ts",
  "src/lower/lower-program.test.ts",
];
const packing = ["src/lower/pack-intervals.test.ts"];
const emitter = [
  "test/differential/wasm-emitter.test.ts",
  "test/differential/wasm-memory.test.ts",
  "test/differential/wasm-index.test.ts",
  "src/emit/wasm/emit-program.test.ts",
];
const operators = ["test/differential/wasm-operators.test.ts"];
const validator = ["src/program/validate"];
const scheduling = ["src/schedule"];
const regions = ["src/region", "src/interp/groups.test.ts", "src/interp/compose.test.ts"];
const graphs = ["src/graph", "test/differential/graph-transforms.test.ts"];
const binding = ["src/runtime/bind-parameters.test.ts"];
const threads = ["src/runtime/wasm"];
const files = ["src/runtime/files"];
const upperHalves = ["src/emit/x64/upper-halves.test.ts"];
const controlWord = ["src/runtime/native/control-word.test.ts"];
const lending = ["src/runtime/native/lent-runs.test.ts"];
const artifacts = ["src/artifact"];
const verdicts = ["src/verdict"];
const kept = ["src/commands/library/kept-model.test.ts"];
const saturation = ["src/egraph/saturate.test.ts", "src/egraph/conformance.test.ts"];
const proofs = ["src/egraph/explain.test.ts"];
const extraction = ["src/egraph/extract"];
const rewriting = ["src/rewrite/rules.test.ts", "src/rewrite/families/derivations.test.ts"];

export const plantedFaults: readonly PlantedFault[] = [
  ...inFile("src/emit/x64/thread-code.ts", upperHalves, [
    ['f.emit("vzeroupper").emit("vldmxcsr"', 'f.emit("vldmxcsr"', "no vzeroupper before the end"],
    ['f.emit("vzeroupper").emit("sub"', 'f.emit("sub"', "no vzeroupper before a yield"],
  ]),
  ...inFile("src/emit/x64/kernel-context.ts", upperHalves, [
    ['f.emit("vzeroupper");', "", "no vzeroupper before functions of the C library"],
  ]),
  ...inFile("src/emit/x64/thread-code.ts", controlWord, [
    ["flushBits = 0x8040", "flushBits = 0", "subnormal numbers are computed with"],
    ["flushBits = 0x8040", "flushBits = 0x0040", "results are not flushed"],
    ["flushBits = 0x8040", "flushBits = 0x8000", "operands are not flushed"],
    [
      '"vldmxcsr", memory(contextPointer, threadBlock.savedControl)',
      '"vldmxcsr", memory(contextPointer, threadBlock.control)',
      "the caller's control word does not come back",
    ],
  ]),
  ...inFile(
    "src/emit/ptx/tile-emitter.ts",
    ["src/emit/ptx/emit-program.test.ts"],
    [
      [
        "isTurned(this.#tile(s, i)) ? 1 : 0",
        "isTurned(this.#tile(s, i)) ? 0 : 0",
        "one order for all",
      ],
      ["(units - 1) * descriptorTemplate", "units * descriptorTemplate", "panels one unit apart"],
      ["(span * 8) / 16", "(span * 16) / 16", "every other eight rows"],
      ["{ 128: 1, 64: 2, 32: 3 }", "{ 128: 1, 64: 3, 32: 2 }", "another swizzle"],
    ],
  ),
  ...inFile(
    "src/lower/product/streamed.ts",
    ["src/lower/product/turned-operands.test.ts"],
    [["add(own, number * panel)", "own", "the first panel for all"]],
  ),
  ...inFile(
    "src/program/validate/tile-turns.ts",
    ["src/program/validate/tile-turns.test.ts"],
    [
      ["mul(blocks, variable(trip))", "variable(trip)", "blocks take the same tiles"],
      [".key === extent.key ? tiles : undefined", ".key ? tiles : undefined", "any count of trips"],
    ],
  ),
  ...inFile("src/lower/conditions.ts", lowering, [
    [
      "add(linear.rest, 1), -linear",
      "linear.rest, -linear",
      "the last trip of a short loop is lost",
    ],
    ["linear.coefficient > 0\n", "linear.coefficient < 0\n", "the hull takes the best end"],
    ["linear.coefficient < 0\n", "linear.coefficient > 0\n", "the extent takes the worst end"],
    ["range.max === 0 : range.min >= 0", "range.max === 0 : range.max >= 0", "possible is proved"],
  ]),
  ...inFile("src/lower/operands.ts", lowering, [
    [
      "reduceConditions(storeGuard, ranges)",
      "reduceConditions([], ranges)",
      "the store guard is dropped",
    ],
    ["operand: whole, lane: l }", "operand: whole, lane: 0 }", "every lane stores lane 0"],
    ["linear.at(-1) === 1 &&", "linear.at(-1) !== 0 &&", "any stride counts as contiguous"],
    ["laneStep: coefficient", "laneStep: 1", "index values step by one from lane to lane"],
  ]),
  ...inFile("src/lower/reduction.ts", lowering, [
    [
      "point, this.#literal(identity)",
      "point, { ...this.#literal(identity), value: 1 }",
      "wrong identity",
    ],
    ["operand,\n          lane,", "operand,\n          lane: 0,", "lane 0 stands for all lanes"],
    ["{ ...this.#literal(identity), lanes: 1 }", "value", "a tail counts once per lane"],
  ]),
  ...inFile("src/lower/exchange.ts", lowering, [
    ["parts[i + half]", "parts[i + 1]", "lanes are combined twice or never"],
  ]),
  ...inFile("src/lower/nest-lowering.ts", lowering, [
    [
      "=> this.#lowerRagged(tile, { ...place, block }, open)",
      "=> void block",
      "ragged tiles are left out",
    ],
    [
      "core(place.block, guards.length === 0)",
      "core(place.block, true)",
      "padding is read unguarded",
    ],
    ["!discharged(c) && !known(c)", "false", "conditions are taken as met"],
    [
      'c.kind === "nonNegative" && falls(c, name)',
      'c.kind === "nonNegative"',
      "too much is discharged",
    ],
  ]),
  ...inFile("src/lower/lower-region.ts", lowering, [
    [
      `this.#staged.get(\`\${statement} \${tensor}\`);`,
      "[...this.#staged.values()][0];",
      "all operands lie in the staged tile",
    ],
    [
      "const guard = source.flatMap((e, i) => inRange(e, shape[i]!));",
      "const guard: never[] = [];",
      "a staged copy reads past the tensor",
    ],
    [
      "for (let i = 0; i < depth; i++) {\n      loops.set",
      "for (let i = 0; i < depth - 1; i++) {\n      loops.set",
      "a guest does not know its last loop",
    ],
  ]),
  ...inFile(
    "src/semantics/layout.ts",
    ["src/semantics/layout.test.ts"],
    [
      [
        "offsets[i] = index < 0 || index >= extent ? Number.NaN",
        "offsets[i] = index < 0 ? Number.NaN",
        "padding holds the next row",
      ],
      ["return lost < 0 ?", "return true ?", "an inverse of another layout is believed"],
    ],
  ),
  ...inFile("src/lower/memory-plan.ts", plans, [
    ["seen.last = time;", "seen.last = time - 1;", "a life ends one task early"],
    [
      "g !== undefined && g.last === life.first",
      "g !== undefined",
      "in place before the last read",
    ],
    ["views.get(name) ?? name", "name", "a view does not keep its owner alive"],
    ["Math.max(mine.last, life.last)", "mine.last", "a shared place is free too early"],
    ["size: Math.max(", "size: Math.min(", "a shared place is as small as its smallest user"],
    ["Math.ceil(n / target.alignmentBytes) * target.alignmentBytes", "n", "arenas are not aligned"],
  ]),
  ...inFile(
    "src/affine/box-image.ts",
    ["src/affine/box-image.test.ts"],
    [
      ["apart <= length && Number.isInteger(apart)", "apart <= length", "runs need not meet"],
      ["else if (step > largest)", "else if (step >= largest)", "values that meet count twice"],
    ],
  ),
  ...inFile(
    "src/affine/symbolic-count.ts",
    ["src/affine/count.test.ts"],
    [
      [
        "dims.concat(locals.flatMap((d, i) => (d === null ? [fixed + i] : [])))",
        "dims",
        "a named floor has one value for all points",
      ],
    ],
  ),
  ...inFile(
    "src/affine/dependence.ts",
    ["src/affine/dependence.test.ts"],
    [
      ['if (first.kind !== "read") return "output";', "", "writes after writes are free"],
      ["second.reassociable && self)", "second.reassociable)", "any marked read is a scan"],
      ["alone.size === end - start", "alone.size > 0", "an access meets itself nowhere"],
    ],
  ),
  ...inFile("src/lower/check-reuse.ts", plans, [
    ["!this.#keeps([earlier], [later], true)", "false", "taking over a place is never judged"],
    ["s.from < to && from < s.to", "s.from < from && from < s.to", "equal places never meet"],
    ["atOnce ? 1 : 2", "1", "every task reads before it writes"],
    ['found.kind === "legal"', 'found.kind !== "unknown"', "a lost value is no reason to refuse"],
  ]),
  ...inFile(
    "src/lower/storage.ts",
    ["src/lower/storage.test.ts"],
    [
      ["if (access.tensor !== tensor) return true;", "return true;", "in place over any operand"],
      [
        "at < reads.length ? loops.map((_, i) => i) : results",
        "results",
        "in place while it folds",
      ],
      ["affine.below(from[dim]!, to[dim]!), ", "", "in place over what later instances read"],
    ],
  ),
  ...inFile("src/lower/pack-intervals.ts", packing, [
    [
      "other.first > last || other.last < first",
      "other.first >= last || other.last <= first",
      "lives that touch overlap",
    ],
    [">= size) break", ">= 1) break", "any gap is large enough"],
    ["Math.ceil(i.size / alignment)", "Math.floor(i.size / alignment)", "sizes are rounded down"],
    [
      "change.set(last + 1, (change.get(last + 1)",
      "change.set(last, (change.get(last)",
      "the bound is too low",
    ],
  ]),
  ...inFile("src/emit/wasm/memory-access.ts", emitter, [
    ["Math.min(each, lanes - chunk * each)", "each", "short vectors move whole chunks"],
    ["at: chunk * each * storageBytes(dtype)", "at: 0", "all chunks lie at the first"],
    ["lane: from / (bits / 8)", "lane: 0", "pieces come from lane 0"],
    ["at + from;\n    if (from", "at;\n    if (from", "pieces are loaded from the first byte"],
    ['  i8: "i32.load8_s"', '  i8: "i32.load8_u"', "i8 loses its sign"],
  ]),
  ...inFile(
    "src/emit/wasm/lanes.ts",
    [...emitter, ...operators],
    [
      [
        `f.lane(\`\${shape}.extract_lane\`, lane)`,
        `f.lane(\`\${shape}.extract_lane\`, 0)`,
        "lane 0 is extracted",
      ],
      ['f.i32Const(-1).op("i32.mul")', "f.mark(`bool`)", "a bool lane is 1, not a mask"],
    ],
  ),
  ...inFile("src/emit/wasm/index-scope.ts", emitter, [
    ["step } of inductions)", "step } of inductions.slice(1))", "an induction is not stepped"],
    [
      'f.i32Const(shift).op("i32.shr_s")',
      'f.i32Const(shift).op("i32.shr_u")',
      "floorDiv of negatives",
    ],
    ["divisor! - 1", "divisor!", "the mask of mod is off by one"],
    [
      '.i32Const(0).op("i32.lt_s").op("i32.sub")',
      '.i32Const(0).op("i32.gt_s").op("i32.sub")',
      "floorDiv rounds wrongly",
    ],
    ["Math.max(this.guardBytes, -lowest)", "0", "no guard below the arenas"],
  ]),
  ...inFile(
    "src/emit/wasm/kernel-emitter.ts",
    [...emitter, ...threads],
    [
      [
        "ix.min(ix.add(first, share), extent)",
        "ix.add(first, share)",
        "the last thread runs past the end",
      ],
      ["if (wraps) this", "if (!wraps) this", "negative indices are not wrapped"],
      [".ge_u`", ".gt_u`", "an index equal to the extent passes"],
      ["element.toReversed()", "element", "chunks of a register are swapped"],
    ],
  ),
  ...inFile(
    "src/emit/wasm/task-emitter.ts",
    [...emitter, ...threads],
    [
      [
        "if (!this.#context.dealing && this.#meetings.has(task)) this.#barrier();",
        "",
        "no barrier between launches",
      ],
      [
        "f.get(launch).get(count).call(settle);",
        "f.i32Const(0);",
        "a thread goes on before all parts of a launch are finished",
      ],
      [
        'get(f.param(1)).op("i32.add").set(instance)',
        'i32Const(1).op("i32.add").set(instance)',
        "threads share instances",
      ],
    ],
  ),
  ...inFile(
    "src/program/meetings.ts",
    ["src/program/validate/repeated-parts.test.ts"],
    [
      [
        "if (isWaiting(task) && alone && isOne)",
        "if (isWaiting(task) && alone)",
        "who is dealt out waits for nobody",
      ],
      [
        "if (isOne && !alone)",
        "if (isOne && alone)",
        "a repeat does not wait for what comes before",
      ],
    ],
  ),
  ...inFile("src/emit/wasm/vector-ops.ts", operators, [
    ['less: "lt"', 'less: "le"', "less is less or equal"],
    ['part < 2 ? "low"', 'part < 3 ? "low"', "the third quarter is widened from the low half"],
  ]),
  ...inFile("src/emit/wasm/integer-rows.ts", operators, [
    [
      'op("xor").constant(0).op("lt_s")',
      'op("xor").constant(0).op("ge_s")',
      "floorMod adds for equal signs",
    ],
  ]),
  ...inFile("src/program/validate/cover.ts", validator, [
    [" && facts.atLeast(add(e, span), box.hi[axis]!)", "", "a store covers all that follows"],
    ["if (!coversList(s.then, taken)) return false;", "", "the taken branch need not cover"],
  ]),
  ...inFile("src/program/validate/listed-cover.ts", validator, [
    [" && start + lane < width", "", "lanes beyond a row count for the next"],
    ["this.left -= 1 - this.#written[at]!;", "this.left -= 1;", "an element counts each time"],
  ]),
  ...inFile("src/program/validate/separate.ts", validator, [
    [" && facts.atLeast(width - span, own)", "", "windows may overlap"],
  ]),
  ...inFile("src/program/validate/in-place.ts", validator, [
    [
      "read.path[at]!.position <= write.path[at]!.position",
      "true",
      "a read after the write is in place",
    ],
  ]),
  ...inFile("src/program/validate/validate.ts", validator, [
    ["checkTaskOrder(program, records, report);", "", "the order of tasks is not checked"],
    ["checkPlacements(program, records, report);", "", "placements are not checked"],
  ]),
  // A wrong end in facts.ts alone proves nothing false: sample points refute it first.
  ...inFile("src/program/validate/linear-facts.ts", validator, [
    [
      "const goal = this.#row(sub(-1, e));",
      "const goal = this.#row(sub(-2, e));",
      "off by one is proved",
    ],
  ]),
  ...inFile("src/schedule/apply.ts", scheduling, [
    [
      "mul(by.factor, variable(by.outer)), variable(by.inner)",
      "mul(by.factor, variable(by.inner)), variable(by.outer)",
      "split swaps its loops",
    ],
    ["ragged.push(less(value, loop.extent))", "void value", "a ragged split runs past the end"],
    [
      "loopPosition(into, d, d.at) + 1",
      "loopPosition(into, d, d.at)",
      "fused one loop too far out",
    ],
    ["a.extent.key === b.extent.key && ", "", "fused loops of other extents"],
  ]),
  ...inFile("src/schedule/legality/legality.ts", scheduling, [
    [
      'if (one.kind === "legal") return;',
      'if (one.kind !== "unknown") return;',
      "everything is legal",
    ],
    ["return [...this.#gridMarks(), ...tiles];", "return tiles;", "threads are ordered"],
  ]),
  ...inFile("src/schedule/legality/legality-class.ts", scheduling, [
    ["{l.mode} ", "{loops.length} ", "modes of loops are not spelled"],
  ]),
  ...inFile("src/schedule/legality/generalise.ts", scheduling, [
    [
      "if (new Set(users.map(shapeOf)).size <= 1) continue;",
      "if (users.length > 0) continue;",
      "axes of unlike digits are general",
    ],
  ]),
  ...inFile("src/schedule/legality/execution-order.ts", scheduling, [
    [
      "order.indexOf(f.statement) < order",
      "order.indexOf(f.statement) > order",
      "guests run on the wrong side",
    ],
  ]),
  ...inFile("src/region/coalesce.ts", regions, [
    [" && extent?.key === b.extent.key", "", "axes longer than the loop are joined"],
    [" && index[axis + 1]?.key === b.name", "", "loops of other axes are joined"],
    [
      'a.kind !== b.kind || a.kind === "scan"',
      'a.kind === "scan"',
      "a reduce loop joins a space loop",
    ],
  ]),
  ...inFile("src/runtime/bind-parameters.ts", binding, [
    ["value < min || value > max", "value > max", "the lower end is not checked"],
    [
      "if (wrong.length > 0) return fail(...wrong.map(wrongShape));",
      "",
      "extents are not compared",
    ],
    ["value === 0 : value >= 0", "value === 0 : true", "requirements are not checked"],
  ]),
  ...inFile("src/runtime/model-session.ts", threads, [
    ["this.#instance.memory.write(buffer.name, tensorBytes(feed))", "0", "stale inputs"],
    [
      "memory.readInto(buffer.name, tensorBytes(outputs[source]!))",
      "memory.readInto(buffer.name, tensorBytes(outputs[source]!).subarray(0, 4))",
      "short outputs",
    ],
    [
      "const turn = this.#queue.then(async",
      "const turn = Promise.resolve().then(async",
      "concurrent runs share the memory",
    ],
    [
      "else if (feed && feed.dtype !== port.dtype)",
      "else if (false)",
      "types of inputs are not compared",
    ],
  ]),
  ...inFile("src/runtime/lent-arrays.ts", lending, [
    ["output.isLent = false;", "", "outputs written over inputs that are still read"],
  ]),
  ...inFile("src/runtime/files/npy.ts", files, [
    ["offset * shape[axis]! + index", "offset * shape[axis]! + 0", "columns of a Fortran array"],
    ["data.length !== needed", "data.length < needed", "bytes behind the data are dropped"],
    ["if (odd >= 0) malformed", "if (odd > 0) malformed", "the first boolean may be anything"],
  ]),
  ...inFile("src/region/compose-epilogue.ts", regions, [
    [
      "if (!indexEquals(covered, shape[axis]!)) {",
      "if (false) {",
      "an epilogue covers a part of the tensor",
    ],
    ["return free ?", "return false ?", "an epilogue repeats an element"],
    [
      "if (![...bindings].every(([name, e]) => indexEquals(same.get(name)!, e))) {",
      "if (false) {",
      "an epilogue reads a tensor at two places",
    ],
  ]),
  ...inFile("src/region/inline-producer.ts", regions, [
    [
      "access.guard.length > 0 && !this.#givesFill(access.fill)",
      "false",
      "padding goes through the producer",
    ],
    ["access.index[axis]!);", "access.index[0]!);", "a producer is read at the first axis"],
    ["if (reduction || finish)", "if (reduction)", "a producer loses its finish"],
    [
      "if (own.length > 0 && !Object.is(access.fill, outer)) {",
      "if (false) {",
      "one fill stands for two",
    ],
  ]),
  ...inFile(
    "src/region/item-order.ts",
    ["src/region/item-order.test.ts"],
    [
      [" && this.#depend(member, at, root)", "", "whoever touches the tensor counts"],
      [
        "if (this.#uses.aliased.has(tensor)) return true;",
        "",
        "places of views count as their own",
      ],
      ["new Set([...writers, ...readers])", "writers", "operands read late may be overwritten"],
      [
        "let i = countUpTo(all, member);",
        "let i = countUpTo(all, member) + 1;",
        "the next item is not asked",
      ],
    ],
  ),
  ...inFile("src/region/affine-bridge.ts", regions, [
    ["affine.atMost(0, name),\n", "", "loops have no lower end"],
    [
      "? this.#widen(at) : this.#convert(at),",
      "? this.#convert(at) : this.#convert(at),",
      "an index from memory is a parameter",
    ],
    [
      'return { kind: "update", reassociable: true };',
      'return { kind: "write" };',
      "updates are writes",
    ],
  ]),
  ...inFile("src/graph/transforms/fold-batch-norm.ts", graphs, [
    ["index.uses.get(inner) !== 1 ||", "", "a sum that others read is folded away"],
    ["b.mul(mean!, factor)", "mean!", "the mean is not scaled"],
    ["own && same ?", "same ?", "a factor lies along a shared axis"],
  ]),
  ...inFile("src/graph/transforms/clean.ts", graphs, [
    ["if (traitsOf(node, old).random) return undefined;", "", "two random draws are one"],
    ["const operands = commutative ?", "const operands = !commutative ?", "operands are exchanged"],
  ]),
  ...inFile("src/artifact/container.ts", artifacts, [
    ["if (wanted === found) return;", "return;", "a changed tensor is believed"],
  ]),
  ...inFile("src/commands/library/kept-model.ts", kept, [
    ["fingerprint, target.name", "target.name", "one artifact is taken for another"],
  ]),
  ...inFile("src/runtime/kept-program.ts", kept, [
    ["end += bytes.length;", "", "blobs of a kept program overlap"],
  ]),
  ...inFile("src/runtime/files/kept-files.ts", files, [
    ["if (hashBytes(contents) !== hash) return undefined;", "", "a damaged file is believed"],
    ["b.mtimeMs - a.mtimeMs", "a.mtimeMs - b.mtimeMs", "the latest files are removed"],
  ]),
  ...inFile("src/artifact/read-artifact.ts", artifacts, [
    ["checkPorts(graph, meta);", "", "ports of another model are believed"],
    [
      "if (!fits || found.bytes.length !== size) {",
      "if (found.bytes.length !== size) {",
      "a weight of another shape is believed",
    ],
  ]),
  ...inFile("src/artifact/checked-indices.ts", artifacts, [
    ['{ ...s, range: "checked" }', "s", "what a file says of its indices is believed"],
  ]),
  ...inFile("src/artifact/read-stages.ts", artifacts, [
    ["checkOrder(graph, stages);", "", "a stage takes what nothing made"],
    [
      "if (program) checkPorts(part, program.meta);",
      "",
      "a stage's program has the ports of another",
    ],
    [
      "if (made.get(name) !== kindOf(values[id]!))",
      "if (!made.has(name))",
      "a stage takes what is of another rank",
    ],
    ["checkNames(tensors, known, meta);", "", "tensors of no stage are let in"],
  ]),
  ...inFile("src/artifact/check-program.ts", artifacts, [
    [
      "if (!valid || placement?.arena !== arenaOfKind[kind]) {",
      "if (!valid) {",
      "weights may lie in scratch memory",
    ],
    ["if (same && buffer.lanes === 1) return;", "return;", "buffers of other types are believed"],
  ]),
  ...inFile("src/verdict/tolerance.ts", verdicts, [
    ["Math.sqrt(terms)", "terms", "the tolerance grows with the length of a sum"],
    [
      "before + own + inside + stored + Math",
      "own + inside + stored + Math",
      "only the last step may round",
    ],
    ["Number.isNaN(distance) ? Infinity : distance", "distance", "NaN agrees with everything"],
    [" || found.dtype !== expected.dtype", "", "another dtype agrees"],
    [
      "if (relative > worst.relative)",
      "if (relative < worst.relative)",
      "the worst is never found",
    ],
  ]),
  ...inFile("src/egraph/node-store.ts", saturation, [
    [
      "this.#dirty.push(first, last, this.cause);",
      "",
      "what uses a class that was lost keeps its old key",
    ],
    ["          this.liveNodes--;\n", "", "copies count as nodes"],
  ]),
  ...inFile("src/egraph/compile-matcher.ts", saturation, [
    ["lines.push(...writeMaskChecks(atom));", "lines.push(`continue;`);", "no atom is found"],
    ['join(" || ");', 'join(" && ");', "news must be in every class that a match looks into"],
  ]),
  ...inFile("src/egraph/saturate.ts", saturation, [
    [
      "else worker.seen = this.#graph.store.now;",
      "else worker.seen = this.#graph.store.now + 1;",
      "a rule has seen what it has not",
    ],
    [
      "workers.every((worker) => worker.seen",
      "workers.some((worker) => worker.seen",
      "one idle rule ends all",
    ],
  ]),
  ...inFile("src/egraph/check-proof.ts", proofs, [
    [
      "if (pattern.name !== undefined && lemma.classes[pattern.name] !== term) return false;",
      "",
      "the judge takes any term for a variable",
    ],
  ]),
  ...inFile("src/egraph/extract/evaluate.ts", extraction, [
    ["} else if (open.has(child)) {", "} else if (child < 0) {", "a choice may need itself"],
  ]),
  ...inFile("src/egraph/extract/branch.ts", extraction, [
    [
      "if (dual.bound + reduced > goal) return false;",
      "if (dual.bound + reduced > goal * 0.9) return false;",
      "branches end before the bound says so",
    ],
    [
      "if (child === c || this.#reaches(child, c)) return undefined;",
      "if (child === c) return undefined;",
      "circles of more than one class are solutions",
    ],
  ]),
  ...inFile("src/egraph/extract/reduce.ts", extraction, [
    [
      "others.length > 0 || only.cost !== 0 || ",
      "others.length > 0 || ",
      "a class that costs is passed as free",
    ],
  ]),
  ...inFile("src/rewrite/conditions.ts", rewriting, [
    [
      "=> sameType(site.type(x!), site.rootType()) },",
      "=> site.type(x!) !== undefined },",
      "a broadcast is the whole",
    ],
    [
      "(a: ConvolutionAttrs) => a.groups === 1)",
      "(a: ConvolutionAttrs) => a.groups > 0)",
      "groups are one",
    ],
  ]),
  ...inFile("src/rewrite/attributes.ts", rewriting, [
    [
      "outer.map((axis) => inner[axis]!)",
      "inner.map((axis) => outer[axis]!)",
      "transposes compose the wrong way",
    ],
  ]),
  ...inFile("src/rewrite/filtering.ts", rewriting, [
    ["[0, 1, -1, 8, -8, 1],", "[0, 1, -1, 8, -8, 0],", "the last row of a tile lacks a term"],
  ]),
  ...inFile("src/rewrite/families/windows.ts", rewriting, [
    [
      "rowsAt(given + low, made - low)",
      "rowsAt(given, made - low)",
      "rows beside the seam are the wrong ones",
    ],
  ]),
  ...inFile("src/rewrite/families/online.ts", rewriting, [
    [
      '"(mul (reduce[?r] (exp (sub ?x ?m))) (exp (sub ?m (max ?m ?n))))"',
      '"(mul (reduce[?r] (exp (sub ?x ?m))) (exp (sub (max ?m ?n) ?m)))"',
      "a block is scaled the wrong way",
    ],
  ]),
];
