/**
 * The rules of the house, checked: the import table of ARCHITECTURE.md is what the code imports, there
 * are no import cycles, files and functions keep their sizes, every file says what it is, pure code
 * touches no machine, and every diagnostic code is documented and provoked by a test.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { diagnosticCodes } from "../src/support/diagnostic-codes.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile() && /\.(ts|mts)$/.test(e.name) && !/[\\/]generated/.test(e.parentPath))
    .map((e) => relative(root, join(e.parentPath, e.name)).split(sep).join("/"))
    .sort();
}

const sources = filesUnder("src");
const isTest = (path: string): boolean => path.endsWith(".test.ts");
const code = sources.filter((p) => !isTest(p));

/** Folder of src/ that a file belongs to; files at the top are their own. */
function areaOf(path: string): string {
  const [, first, second] = path.split("/");
  return second === undefined ? first! : first!;
}

function importsOf(path: string): string[] {
  const pattern = /(?:^|\n)\s*(?:import|export)\b[^"';]*?from\s+"([^"]+)"|import\("([^"]+)"\)/g;
  return [...read(path).matchAll(pattern)].map((m) => m[1] ?? m[2]!);
}

function resolved(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return join(dirname(path), specifier).split(sep).join("/");
}

/** The table in ARCHITECTURE.md: `| folder | … | may import |`. */
function importTable(): Map<string, Set<string>> {
  const rows = [...read("ARCHITECTURE.md").matchAll(/^\| `([\w.-]+?)\/?`\s*\|[^|]*\|([^|]*)\|$/gm)];
  return new Map(
    rows.map((m) => [m[1]!, new Set([...m[2]!.matchAll(/`([\w.-]+?)\/?`/g)].map((x) => x[1]!))]),
  );
}

describe("third-party notices", () => {
  it("name every bundled package in its installed version (npm run notices)", () => {
    const notices = read("THIRD_PARTY_NOTICES");
    const { devDependencies, peerDependencies } = JSON.parse(read("package.json")) as Readonly<
      Record<"devDependencies" | "peerDependencies", Readonly<Record<string, string>>>
    >;
    const bare = code
      .filter((path) => !path.includes(".test"))
      .flatMap(importsOf)
      .map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)![0])
      .filter((name) => devDependencies[name] !== undefined && !peerDependencies[name]);
    const missing = [...new Set(bare)].filter(
      (name) => !notices.includes(`${name} ${devDependencies[name]} (`),
    );
    expect(missing).toEqual([]);
  });
});

describe("subpath exports", () => {
  it("have an entry of the build each", () => {
    const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, unknown> };
    const entries = read("tsdown.config.ts");
    for (const path of Object.keys(exports).filter((p) => p !== "./package.json")) {
      const name = path === "." ? "index" : path.slice(2);
      expect(entries).toMatch(new RegExp(`${name}: "src/(${name}/)?index.ts"`));
    }
  });
});

describe("imports", () => {
  const table = importTable();

  it("stay inside the table of ARCHITECTURE.md", () => {
    const wrong: string[] = [];
    for (const path of code) {
      const area = areaOf(path);
      const allowed = table.get(area);
      if (!allowed) wrong.push(`${path}: ${area} has no row`);
      for (const specifier of importsOf(path)) {
        const target = resolved(path, specifier);
        if (target === undefined || !target.startsWith("src/")) continue;
        const other = areaOf(target);
        if (other === area || other === "support" || allowed?.has(other)) continue;
        wrong.push(`${path} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("have no cycle between files", () => {
    const graph = new Map(
      code.map((p) => [p, runtimeImports(p).flatMap((s) => resolved(p, s) ?? [])]),
    );
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (path: string, trail: readonly string[]): void => {
      if (state.get(path) === "done") return;
      if (state.get(path) === "open") {
        cycles.push([...trail.slice(trail.indexOf(path)), path].join(" -> "));
        return;
      }
      state.set(path, "open");
      for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
      state.set(path, "done");
    };
    for (const path of graph.keys()) visit(path, []);
    expect(cycles).toEqual([]);
  });

  it("of siblings among the emitters do not exist", () => {
    const wrong = code.flatMap((path) => {
      const emitter = /^src\/emit\/(\w+)\//.exec(path)?.[1];
      if (!emitter) return [];
      return importsOf(path)
        .flatMap((s) => resolved(path, s) ?? [])
        .filter((t) => t.startsWith("src/emit/") && !t.startsWith(`src/emit/${emitter}/`))
        .map((t) => `${path} imports ${t}`);
    });
    expect(wrong).toEqual([]);
  });
});

/** Imports that exist when the code runs: type-only ones may go in circles. */
function runtimeImports(path: string): string[] {
  const text = read(path);
  const pattern = /(?:^|\n)\s*(?:import|export)\s+(?!type\b)([^"';]*?)from\s+"([^"]+)"/g;
  return [...text.matchAll(pattern)]
    .filter((m) => !/^\{\s*(type [^,}]+,?\s*)+\}\s*$/.test(m[1]!))
    .map((m) => m[2]!);
}

describe("sizes", () => {
  /** Tables may be longer: name and reason. */
  const tables: Readonly<Record<string, string>> = {
    "src/emit/wasm/opcodes.ts": "the instruction set",
  };

  it("of files stay under 600 lines, tables under 1,000", () => {
    const long = [...sources, ...filesUnder("test")].filter((path) => {
      const lines = read(path).split("\n").length;
      return lines > (tables[path] ? 1000 : 600);
    });
    expect(long).toEqual([]);
  });

  /** Longer ones, with the reason. */
  const longFunctions: Readonly<Record<string, string>> = {
    "src/frontend/onnx/import/symbolic-number.ts": "small functions that share the ranges",
  };

  it("of functions stay under 80 lines", () => {
    const long: string[] = [];
    for (const path of code) {
      const lines = read(path).split("\n");
      lines.forEach((line, at) => {
        const opens =
          /^(\s*)(?:export )?(?:async )?(?:function\*? |(?:static |readonly |private |async |override |get |set |#)*[\w#]+\([^)]*\).*\{$)/.exec(
            line,
          );
        if (!opens || !line.trimEnd().endsWith("{")) return;
        const end = lines.findIndex((l, i) => i > at && l.startsWith(`${opens[1]}}`));
        if (end - at > 80 && !longFunctions[path])
          long.push(`${path}:${at + 1} (${end - at} lines)`);
      });
    }
    expect(long).toEqual([]);
  });
});

describe("source files", () => {
  it("open with a comment that says what they are", () => {
    const silent = code.filter((path) => !/^(#![^\n]*\n)?\s*\/\*\*/.test(read(path)));
    expect(silent).toEqual([]);
  });

  it("touch the machine only in runtime/, cli/ and mcp/", () => {
    const free = /^src\/(runtime|cli|mcp)\//;
    const forbidden =
      /from "node:|Math\.random\(|\bDate\.now\(|\bnew Date\(|performance\.now\(|\bprocess\.|\bconsole\./;
    const wrong = code.filter((path) => {
      if (free.test(path)) return false;
      const text = read(path).replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
      return forbidden.test(text);
    });
    expect(wrong).toEqual([]);
  });

  it("outside target/, emit/ and runtime/ compare no machine by name", () => {
    const free = /^src\/(target|emit|runtime|commands|cli)\//;
    const wrong = code.filter((path) => {
      const text = read(path).replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
      return !free.test(path) && /=== "(wasm|x64|ptx|wgsl|sm_\w+|avx\w*)"/.test(text);
    });
    expect(wrong).toEqual([]);
  });
});

describe("order and reuse of memory", () => {
  const judges = /from "[./]*(affine\/index|affine-bridge|item-order|check-reuse)\.ts"/;
  /** They look at reads and at writes, and decide about no order: what they do instead. */
  const noDecision: Readonly<Record<string, string>> = {
    "src/lower/first-places.ts": "spells one routine: it reads one tensor and writes another",
    "src/lower/lower-region.ts": "finds the buffers of tiles that legality has allowed",
    "src/lower/nest-lowering.ts": "spells loads and stores in the order of the schedule",
    "src/lower/product/lower-product.ts":
      "spells one statement's tiles; its loops carry a sum only",
    "src/lower/product/results.ts": "spells the epilogue of one statement",
    "src/lower/rows/lower-rows.ts":
      "spells the statements in the order that rows-tree.ts has proved",
    "src/lower/task-uses.ts": "lists who touches what",
    "src/region/channel-blocks.ts":
      "renames elements: one store for each, by a statement of its own",
    "src/region/channels-last.ts": "turns axes: the same points, one store for each",
    "src/region/weight-order.ts": "turns axes of weights, which nothing writes",
    "src/region/coalesce.ts": "renames loops: the same points in the same order",
    "src/region/compose-epilogue.ts": "puts an expression in place of the element that it makes",
    "src/region/groups.ts": "proposes groups; form-region.ts asks whether they may run late",
    "src/region/growing-joins.ts":
      "renames elements: one store for each, and the validator proves that it comes before",
    "src/region/inline-producer.ts": "puts an expression in place of the element that it makes",
    "src/region/passes.ts": "tells of what was decided",
    "src/region/prune.ts": "drops what nobody reads",
    "src/region/region-hash.ts": "spells a region",
    "src/region/statement.ts": "replaces variables",
    "src/region/uses.ts": "lists who touches what",
    "src/schedule/blocks/block-candidates.ts": "proposes schedules, which are then decided",
    "src/schedule/chains/chain-space.ts": "proposes schedules, which are then decided",
    "src/schedule/choice/choose-layouts.ts": "lists who meets a map in which form",
    "src/schedule/legality/generalise.ts": "makes the region that stands for a class",
    "src/schedule/states/nest-figures.ts": "counts for prices",
    "src/lower/lower-program.ts": "puts scans where item-order.ts left them",
    "src/lower/attention/lower-attention.ts": "spells what attention-tree.ts had decided",
    "src/schedule/attention/attention-form.ts":
      "finds what is made for one row; attention-tree.ts has affine/ decide",
    "src/schedule/attention/join-attention.ts":
      "proposes regions; what may run late is item-order.ts' answer",
    "src/schedule/rows/join-rows.ts":
      "proposes regions; what may run late is item-order.ts' answer",
    "src/schedule/rows/rows-candidates.ts": "proposes schedules, which are then decided",
    "src/schedule/rows/rows-form.ts":
      "finds what is made for one row; rows-tree.ts has affine/ decide",
    "src/lower/turns/lower-turn.ts":
      "spells one statement in the order that turn-tree.ts has proved",
    "src/schedule/turns/turn-candidates.ts": "proposes schedules, which are then decided",
    "src/schedule/turns/turn-form.ts":
      "finds which operands lie otherwise; turn-tree.ts has affine/ decide",
    "src/schedule/states/tile-space.ts": "proposes schedules, which are then decided",
    "src/schedule/products/prologues.ts":
      "proposes regions; what may run late is item-order.ts' answer",
    "src/schedule/products/split-products.ts":
      "makes two statements of one; what is between them is new",
    "src/schedule/blocks/split-scatters.ts":
      "makes statements of one and the copy before it, whose operands are whole by then; what is between them is new",
    "src/schedule/rows/split-scans.ts": "makes four statements of one; what is between them is new",
    "src/schedule/products/product-readers.ts":
      "lists who alone reads a product; what may run late is item-order.ts' answer",
    "src/schedule/products/placed-results.ts":
      "puts a product where its reader stands (product-readers.ts)",
    "src/schedule/products/folded-results.ts":
      "proposes regions of a product and its reader; product-tree.ts has affine/ decide",
    "src/schedule/products/operand-orders.ts":
      "puts a copy of all of a tensor before its first reader; what is between them is new",
    "src/schedule/products/padded-depths.ts":
      "reads copies of all of two tensors, that are before it (operand-orders.ts)",
  };
  /** They apply schedules that nobody runs: prices, and repairs that their caller decides. */
  const neverRun = [
    "src/cost/price-graph.ts",
    "src/schedule/chains/chain-states.ts",
    "src/schedule/legality/cure.ts",
    "src/schedule/apply.ts",
    "src/schedule/states/region-prices.ts",
  ];

  const comparesUses = "compares reads with writes";
  const comparesSpelling = "compares the spelling of places";
  const placesUnjudged = "gives out memory that nobody judges";
  const appliesUndecided = "applies a schedule that nobody decides";

  /** Where a text decides what affine/ has to decide. */
  function guesses(path: string, text: string): string[] {
    const plain = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
    const found: string[] = [];
    const spelled = /\.index\.map\(\(?\w+\)? => \w+\.key\)/.test(plain);
    if (/^src\/(region|schedule|lower)\//.test(path)) {
      const both =
        /\.(reads|finishReads)\b|\breaders\b/.test(plain) && /\.writes\b|\bwriters\b/.test(plain);
      if (both && !judges.test(plain)) found.push(comparesUses);
      if (both && spelled) found.push(comparesSpelling);
    }
    const places = /\bplacement: \{/.test(plain);
    if (/^src\/lower\//.test(path) && places && !/\bfindLostValue\(/.test(plain))
      found.push(placesUnjudged);
    if (/\bapplySchedule\(/.test(plain) && !/\b(decide|check)Schedule\(/.test(plain))
      found.push(appliesUndecided);
    return found;
  }

  it("are decided by affine/ alone", () => {
    const wrong = code.flatMap((path) => {
      const found = guesses(path, read(path));
      const excused = [
        ...(noDecision[path] ? [comparesUses, comparesSpelling] : []),
        ...(neverRun.includes(path) ? [appliesUndecided] : []),
      ];
      const inVain = excused.length > 0 && !excused.some((what) => found.includes(what));
      const left = found.filter((what) => !excused.includes(what));
      return [...left, ...(inVain ? ["is excused in vain"] : [])].map((what) => `${path} ${what}`);
    });
    expect(wrong).toEqual([]);
  });

  it.each([
    [
      "src/lower/planted.ts",
      "const same = s.reads.filter((r) => r.index.map((e) => e.key).join() === s.writes[0]!.index.map((e) => e.key).join());",
      [comparesUses, comparesSpelling],
    ],
    [
      "src/region/planted.ts",
      "if (uses.readers.get(t)!.every((at) => at > uses.writers.get(t)!.at(-1)!)) fuse();",
      [comparesUses],
    ],
    [
      "src/lower/planted.ts",
      "out.push({ ...b, placement: { arena, byteOffset } });",
      [placesUnjudged],
    ],
    ["src/commands/planted.ts", "return applySchedule(region, schedule);", [appliesUndecided]],
  ])("a guess planted in %s is found", (path, text, what) => {
    expect(guesses(path, text)).toEqual(what);
    expect(guesses(path, `/* ${text} */`)).toEqual([]);
  });
});

describe("diagnostic codes", () => {
  const tests = [...sources.filter(isTest), ...filesUnder("test"), ...filesUnder("bench")]
    .map(read)
    .join("\n");
  const documented = read("docs/error-codes.md");
  const codes = Object.keys(diagnosticCodes);

  it("are all in docs/error-codes.md, and nothing else is", () => {
    const headings = [...documented.matchAll(/^#+ ([A-Z]{3}\d{3})\b/gm)].map((m) => m[1]!);
    expect([...headings].sort()).toEqual([...codes].sort());
  });

  it("are all provoked by a test", () => {
    expect(codes.filter((c) => !tests.includes(c))).toEqual([]);
  });
});
