/** Mutants of program texts: one fault each, by rule, wherever the rule applies. */

export interface Mutant {
  /** The rule. */
  readonly kind: string;
  readonly what: string;
  readonly text: string;
}

interface Rule {
  readonly what: string;
  /** Texts without it are left alone: there the change is none of meaning. */
  readonly only?: string | ((text: string) => boolean);
  readonly line: RegExp;
  /** The line as it becomes; undefined where nothing changes. */
  readonly change: (line: string) => string | undefined;
}

const drop = (line: string): string => line.replace(/\S.*$/, "");

/**
 * The guards of the tiles at an edge, all of them: by itself one may never decide. The bound moves by more
 * than a vector or a fragment spans.
 */
function edgesMoved(text: string): readonly Mutant[] {
  return ["down", "across"].flatMap((axis) =>
    [8, -8].flatMap((by) => {
      const guard = new RegExp(`^(\\s*if -\\d+\\*${axis}\\d.* \\+ )(\\d+) >= 0`, "gm");
      const moved = text.replace(guard, (line, head, bound) => {
        const others = line.split(" >= 0").length > 2;
        return others ? line : `${head}${Number(bound) + by} >= 0`;
      });
      const what = `guards along ${axis} ${by > 0 ? "too loose" : "too tight"}`;
      return moved === text ? [] : [{ kind: what, what, text: moved }];
    }),
  );
}

/** The first `mod(…, n)` one further. */
function nextStage(line: string): string | undefined {
  const changed = line.replace(/mod\(([^()]*(?:\([^()]*\))?[^()]*), (\d+)\)/, "mod($1 + 1, $2)");
  return changed === line ? undefined : changed;
}

const rules: readonly Rule[] = [
  { what: "wait dropped", line: /^\s*wait /, change: drop },
  { what: "wait for the other phase", line: /^\s*wait /, change: (l) => `${l} + 1` },
  { what: "wait for the stage after", line: /^\s*wait /, change: nextStage },
  { what: "group not waited for", line: /^\s*await /, change: drop },
  {
    what: "group waited for too loosely",
    line: /^\s*await /,
    change: (l) => l.replace(/pending (\d+)/, (_, n) => `pending ${Number(n) + 1}`),
  },
  { what: "wait for earlier launches dropped", line: /^\s*prerequisites end/, change: drop },
  { what: "fence dropped", line: /^\s*fence /, change: drop },
  {
    what: "fence of the other scope",
    line: /^\s*fence shared/,
    change: (l) => l.replace("shared", "memory"),
  },
  { what: "barrier dropped", line: /^\s*barrier /, change: drop },
  // Blocks of two warpgroups have as many as both may hold.
  {
    what: "registers not given back",
    only: (text) => threadsOf(text) > 256,
    line: /setmaxnreg\.dec/,
    change: drop,
  },
  {
    what: "a vector of a tile put one further",
    line: /^\s*store \S+\.tile\d+\[/,
    change: nextStage,
  },
  {
    what: "elements of a tile taken one further",
    line: /^\s*let .* = load\.\w+ \S+\.tile\d+\[/,
    change: nextStage,
  },
  {
    what: "warps that leave their parts in one place",
    line: /^\s*store parts\d+\[/,
    change: (l) => l.replace(/floorDiv\([^()]*(?:\([^()]*\))?[^()]*, 32\)\]/, "0]"),
  },
  {
    what: "parts read one too far",
    line: /^\s*let .* = load\.\w+ parts\d+\[/,
    change: (l) => l.replace(/, 0\]/, ", 1]"),
  },
  {
    what: "exchange with another thread",
    // The greatest value may be on either side.
    only: "sqrt(",
    line: /^\s*issue shuffle\.xor16/,
    change: (l) => l.replace("xor16", "xor8"),
  },
  { what: "commit dropped", line: /^\s*commit /, change: drop },
  { what: "signal dropped", line: /^\s*signal /, change: drop },
  { what: "signal of the stage after", line: /^\s*signal /, change: nextStage },
  { what: "signal that stays at home", line: /^\s*signal .*in cluster/, change: atHome },
  { what: "announcement dropped", line: /^\s*expect /, change: drop },
  {
    what: "too few bytes announced",
    line: /^\s*expect /,
    change: (l) => l.replace(/bytes (\d+)/, (_, n) => `bytes ${Number(n) - 16}`),
  },
  {
    what: "too many bytes announced",
    line: /^\s*expect /,
    change: (l) => l.replace(/bytes (\d+)/, (_, n) => `bytes ${Number(n) + 16}`),
  },
  { what: "copy to the stage after", line: /^\s*issue bulk\.load/, change: nextStage },
  {
    what: "multicast that stays at home",
    line: /^\s*issue bulk\.load.*in cluster/,
    change: atHome,
  },
  { what: "copy into the stage after", line: /^\s*issue cp\.async/, change: nextStage },
  // Later ones find the zeros of a stage before.
  { what: "zeros dropped", line: /^\s*store (left|right)\[first.* = \w+\(0\)$/, change: drop },
  {
    what: "multiplication of the other columns",
    line: /^\s*issue mma\..*rights\[\d+, [04]\]/,
    change: (l) => l.replace(/(rights\[\d+), ([04])\]/, (_, at, n) => `${at}, ${4 - Number(n)}]`),
  },
  {
    what: "results of another row",
    line: /^\s*(store|let) .*load\.f32x2 sums\[/,
    change: (l) =>
      l.replace(/(sums\[\d+, \d+), ([02])\]/, (_, at, n) => `${at}, ${2 - Number(n)}]`),
  },
  {
    what: "sums to the other block",
    line: /^\s*issue peer\.store/,
    change: (l) => l.replace(/in peer (\d+)/, (_, n) => `in peer ${Number(n) === 0 ? 1 : 0}`),
  },
  {
    what: "sums in the place of another block",
    line: /^\s*issue peer\.store/,
    change: (l) => l.replace(/(received\d*\[[^,]*), (part\d*),/, "$1, 1 - $2,"),
  },
  { what: "copy dropped", line: /^\s*issue (bulk|cp\.async|peer)/, change: drop },
  {
    what: "copy from a row too far",
    line: /^\s*issue bulk\.load/,
    change: (l) => l.replace(/, ([xw])\[/, ", $1[1 + "),
  },
  {
    what: "number of the first problem for all",
    line: /^\s*let .* = load\.i32 which\[/,
    change: (l) => l.replace(/which\[batch\d+\]/, "which[0]"),
  },
  {
    what: "first matrix in the place of the one that data says",
    line: /^\s*issue (cp\.async|bulk\.load).*, w\[v/,
    change: (l) => l.replace(/, w\[v\d+_\d+/, ", w[0"),
  },
  {
    what: "matrix after the one that data says",
    line: /^\s*issue (cp\.async|bulk\.load).*, w\[v/,
    change: (l) => l.replace(/, w\[(v\d+_\d+)/, ", w[1 - $1"),
  },
  {
    what: "operand of the first problem for all",
    line: /^\s*issue (cp\.async|bulk\.load).*, x\[batch/,
    change: (l) => l.replace(/, x\[batch\d+/, ", x[0"),
  },
  {
    what: "results of the first problem for all",
    line: /^\s*(store|issue bulk\.store).*\bt\d+\[batch/,
    change: (l) => l.replace(/\b(t\d+)\[batch\d+/, "$1[0"),
  },
  {
    what: "tile below",
    only: "which[",
    line: /^\s*(issue cp\.async|store t).*\*down/,
    change: (l) => l.replace(/(\d+)\*(down\d+)/, "$1*$2 + $1"),
  },
  {
    what: "tile beside",
    only: "which[",
    line: /^\s*(issue cp\.async|store t).*\*across/,
    change: (l) => l.replace(/(\d+)\*(across\d+)/, "$1*$2 + $1"),
  },
  {
    what: "sums of the step before kept",
    line: /^\s*issue mma\.set\./,
    change: (l) => l.replace("mma.set.", "mma."),
  },
  {
    what: "products of a step forgotten",
    only: "mma.set.",
    line: /^\s*issue mma\.m/,
    change: (l) => l.replace("mma.", "mma.set."),
  },
  { what: "sums of a step dropped", line: /^\s*store sums\[\d+, 1?\d\].*partial/, change: drop },
  { what: "multiplication with the stage after", line: /^\s*issue wgmma/, change: nextStage },
  { what: "matrix load from the stage after", line: /^\s*issue ldmatrix/, change: nextStage },
  {
    what: "old sums forgotten",
    line: /^\s*issue wgmma\.(m64|trans)/,
    change: (l) => l.replace("wgmma.", "wgmma.set."),
  },
  {
    what: "rows taken for the depth",
    line: /^\s*issue wgmma.*trans/,
    change: (l) => along(l, "left"),
  },
  {
    what: "columns taken for the depth",
    line: /^\s*issue wgmma.*trans/,
    change: (l) => along(l, "right"),
  },
  {
    what: "order of the other operand",
    line: /^\s*issue wgmma.*trans\.(left|right)/,
    change: (l) =>
      l.replace(/trans\.(left|right)/, (_, s) => `trans.${s === "left" ? "right" : "left"}`),
  },
  {
    what: "panel in the place of the first",
    line: /^\s*issue bulk\.load.*, [1-9], 0, 0\]/,
    change: (l) => l.replace(/, [1-9], 0, 0\]/, ", 0, 0, 0]"),
  },
  {
    what: "first panel in the place of another",
    line: /^\s*issue bulk\.load.*, [1-9], 0, 0\]/,
    change: (l) =>
      l.replace(/( \+ \d+|, \d+)(\] box \[\d+, \d+\]\) signals)/, (_, at, rest) =>
        at.startsWith(",") ? `, 0${rest}` : rest,
      ),
  },
  {
    what: "multiplication of another panel",
    line: /^\s*issue wgmma.*, 1, \d+, 0\] box \[1, /,
    change: (l) => l.replace(/, 1, (\d+), 0\] box/, ", 0, $1, 0] box"),
  },
  {
    what: "multiplication of another depth of a panel",
    line: /^\s*issue wgmma.*, 16, 0\] box \[\d, /,
    change: (l) => l.replace(/, 16, 0\] box/, ", 32, 0] box"),
  },
  {
    what: "a step more than data says",
    line: /^\s*for (trip|step)\d+ < .*last/,
    change: (l) => l.replace(/ \{$/, " + 1 {"),
  },
  {
    what: "a step less than data says",
    line: /^\s*for (trip|step)\d+ < .*last/,
    change: (l) => l.replace(/ \{$/, " - 1 {"),
  },
  { what: "part of the columns not left", line: /^\s*store \S+\.(partials|sums)\[/, change: drop },
  {
    what: "parts of the columns in one place",
    line: /^\s*store \S+\.(partials|sums)\[part/,
    change: (l) => l.replace(/\[part\d+,/, "[0,"),
  },
  {
    what: "part of the columns taken from the one before",
    line: /load\.\w+ \S+\.(partials|sums)\[part/,
    change: (l) => l.replace(/(partials|sums)\[(part\d+)/, "$1[-1 + $2"),
  },
  {
    what: "parts taken before they are all there",
    line: /^\s*launch \S+\.1 after previous/,
    change: (l) => l.replace("after previous", "after counters"),
  },
  {
    what: "parts of the columns not added",
    line: /^\s*store (totals|results)\[0, 0\] = .*\.(partials|sums)\[/,
    change: drop,
  },
  {
    what: "results not scaled",
    line: /^\s*store results\[0, 0\] = mul\(load/,
    change: drop,
  },
  {
    what: "swizzle of another span",
    // Threads find what threads have put under any swizzle; copies and matrix units know one.
    only: "bulk.",
    line: /^\s*buffer .* swizzle /,
    change: (l) => l.replace(/swizzle (\d+)/, (_, n) => `swizzle ${n === "128" ? 64 : 128}`),
  },
  {
    what: "one arrival too many",
    line: /^\s*counter .* arrivals /,
    change: (l) => l.replace(/arrivals (\d+)/, (_, n) => `arrivals ${Number(n) + 1}`),
  },
  {
    what: "one arrival too few",
    line: /^\s*counter .* arrivals /,
    change: (l) => l.replace(/arrivals (\d+)/, (_, n) => `arrivals ${Math.max(1, Number(n) - 1)}`),
  },
  {
    what: "a stage too few",
    line: /^\s*buffer s[xw] /,
    change: (l) => l.replace(/\[(\d+), /, (_, n) => `[${Number(n) - 1}, `),
  },
];

/** The instruction that takes a panel of 64 rows (or columns), 64 deep, the other way. */
function along(line: string, side: "left" | "right"): string | undefined {
  const other = side === "left" ? "right" : "left";
  const box = new RegExp(`(${side}\\[.*?, \\d+), (\\d+), 0\\] box \\[1, 16, 64\\]`);
  const isTaken = box.test(line) && !line.includes(`trans.${other}`);
  if (!isTaken) return undefined;
  return line
    .replace(`trans.${side}.`, "")
    .replace("trans.both.", `trans.${other}.`)
    .replace(box, "$1, 0, $2] box [64, 16]");
}

/** Threads of a block: those of all roles. */
function threadsOf(text: string): number {
  const roles = [...text.matchAll(/^\s*role \S+ copies (\d+)(?: as \S+)? threads (\d+)/gm)];
  return roles.reduce((sum, [, copies, threads]) => sum + Number(copies) * Number(threads), 0);
}

function atHome(line: string): string {
  return line.replace("in cluster", "in instance");
}

export function mutantsOf(text: string): readonly Mutant[] {
  const lines = text.split("\n");
  const applicable = rules.filter(({ only = "" }) =>
    typeof only === "string" ? text.includes(only) : only(text),
  );
  const byLine = applicable.flatMap(({ what, line: pattern, change }) =>
    lines.flatMap((line, i) => {
      const changed = pattern.test(line) ? change(line) : undefined;
      if (changed === undefined || changed === line) return [];
      return [
        { kind: what, what: `line ${i + 1}: ${what}`, text: lines.with(i, changed).join("\n") },
      ];
    }),
  );
  return [...byLine, ...edgesMoved(text)];
}
