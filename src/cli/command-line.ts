/**
 * Arguments to an exit code. Commander reads options as the schemas of the registry describe them, the
 * schema checks their values, the action works, and the answer is printed as text or as one JSON
 * document.
 */
import { Command as Commander, CommanderError, Option } from "commander";
import pc from "picocolors";
import { z } from "zod";
import { argumentInfo, type Command, type CommandResult } from "../commands/command.ts";
import { exitCodeOf, exitCodes } from "../commands/exit-codes.ts";
import { commands } from "../commands/registry.ts";
import { version } from "../commands/version.ts";
import {
  containLater,
  type Diagnostic,
  diagnostic,
  fail,
  formatDiagnostic,
  type Result,
} from "../support/diagnostic.ts";
import { InternalError } from "../support/invariant.ts";

interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

export interface Surroundings {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds. */
  readonly now: () => number;
  /** Tells of an interrupt; called once for each command that can stop halfway. */
  readonly onInterrupt: (stop: () => void) => void;
}

type Options = Readonly<Record<string, unknown>>;

/** Runs one command line; never throws for what the user did. */
export async function runCommandLine(
  argv: readonly string[],
  around: Surroundings,
): Promise<number> {
  let exit: number = exitCodes.ok;
  const program = new Commander("wavetile")
    .description("Compiles AI models into verified programs and runs them.")
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => around.stdout.write(text),
      writeErr: (text) => around.stderr.write(text),
      // Faults are printed as diagnostics, below.
      outputError: () => {},
    });
  for (const command of commands) {
    const sub = addCommand(program, command.name).description(command.summary);
    addArguments(sub, command.args);
    sub.option("--json", "print one JSON document");
    sub.action(async (...given: unknown[]) => {
      exit = await runCommand(command, collectArguments(command, given), around);
    });
  }
  try {
    await program.parseAsync(argv as string[], { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return answerUsage(error, argv, around);
    // Whatever else is thrown is our bug too: it ends in the same document and exit code.
    const bug = error instanceof Error ? error : new InternalError(String(error));
    if (argv.includes("--json")) {
      const command = commands.find((c) => c.name === argv[0])?.name ?? "usage";
      const document = {
        ok: false,
        schema: `wavetile/${command}/1`,
        error: { code: "INTERNAL", message: bug.message, at: null, notes: [], help: null },
        warnings: [],
        meta: { version, seed: null, durationMs: 0, target: null },
      };
      around.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
    }
    around.stderr.write(`internal error: ${bug.stack ?? bug.message}\n`);
    return exitCodes.internal;
  }
}

/** A name of two words is a command of a group, `plan quantize`. */
function addCommand(program: Commander, name: string): Commander {
  const [first, second] = name.split(" ");
  if (second === undefined) return program.command(name);
  const known = program.commands.find((c) => c.name() === first);
  return (known ?? program.command(first!).description(groups[first!]!)).command(second);
}

const groups: Readonly<Record<string, string>> = {
  plan: "decide before running: formats, kernels, placement, dispatch",
};

/** The command that the arguments begin with. */
function commandOf(argv: readonly string[]): Command | undefined {
  return commands.find((c) => c.name.split(" ").every((word, i) => argv[i] === word));
}

/** Commander stops with an error for help and version too; help asked for by no argument is a fault. */
function answerUsage(error: CommanderError, argv: readonly string[], around: Surroundings): number {
  if (error.exitCode === 0) return exitCodes.ok;
  if (error.code === "commander.help") return exitCodes.usage;
  const command = commandOf(argv);
  const fault = diagnostic("CLI001", error.message.replace(/^error: /, ""), {
    help: `see wavetile ${command ? `${command.name} ` : ""}--help`,
  });
  if (argv.includes("--json")) {
    const meta = { seed: undefined, durationMs: 0 };
    const document = envelope(command?.name ?? "usage", fail(fault), meta);
    around.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else {
    const colors = pc.createColors(useColors(around));
    around.stderr.write(`${colors.red(formatDiagnostic(fault))}\n`);
  }
  return exitCodeOf(fault.code);
}

function addArguments(sub: Commander, schema: z.ZodObject): void {
  for (const [key, field] of Object.entries(schema.shape)) {
    const { description, value, positional, short } = argumentInfo(field as z.ZodType);
    const optional = (field as z.ZodType).safeParse(undefined).success;
    if (positional) {
      sub.argument(optional ? `[${value}]` : `<${value}>`, description);
      continue;
    }
    const flags = `${short ? `-${short}, ` : ""}--${dashed(key)}${value ? ` <${value}>` : ""}`;
    const option = new Option(flags, description);
    if (isList(field as z.ZodType)) {
      option.argParser((text: string, before: readonly string[] | undefined) => [
        ...(before ?? []),
        text,
      ]);
    }
    sub.addOption(option);
  }
}

function dashed(key: string): string {
  return key.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
}

function isList(field: z.ZodType): boolean {
  return field instanceof z.ZodDefault && field.def.innerType instanceof z.ZodArray;
}

/** Commander gives positionals, then the options, then itself. */
function collectArguments(command: Command, given: readonly unknown[]): Options {
  const positionals = Object.entries(command.args.shape)
    .filter(([, field]) => argumentInfo(field as z.ZodType).positional)
    .map(([key], i) => [key, given[i]]);
  const options = given[positionals.length] as Options;
  const all = [...positionals, ...Object.entries(options)];
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

async function runCommand(
  command: Command,
  { json, ...options }: Options,
  around: Surroundings,
): Promise<number> {
  const begin = around.now();
  const colors = pc.createColors(useColors(around));
  const parsed = command.args.safeParse(options);
  const watched = around.stderr.isTTY === true && json !== true;
  const progress = (text: string): void => {
    if (watched) around.stderr.write(`\r\u001b[K${colors.dim(text)}`);
  };
  const interrupted = (): AbortSignal => {
    const controller = new AbortController();
    around.onInterrupt(() => controller.abort());
    return controller.signal;
  };
  const result: Result<CommandResult> = parsed.success
    ? await containLater(async () => {
        const action = await command.load();
        return action(parsed.data, { now: around.now, progress, interrupted });
      })
    : fail(...parsed.error.issues.map((issue) => badArgument(issue, command.name, options)));
  if (watched) around.stderr.write("\r\u001b[K");
  const durationMs = Math.round(around.now() - begin);
  const faults = result.ok ? (result.value.failed ?? []) : result.diagnostics;
  if (json === true) {
    const document = envelope(command.name, result, { seed: parsed.data?.seed, durationMs });
    around.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else if (result.ok) {
    around.stdout.write(`${result.value.text}\n`);
  }
  const warnings = result.ok ? result.warnings : [];
  if (json !== true) {
    for (const d of [...warnings.filter((w) => w.severity !== "info"), ...faults]) {
      const paint = d.severity === "error" ? colors.red : colors.yellow;
      around.stderr.write(`${paint(formatDiagnostic(d))}\n`);
    }
  }
  const worst = faults.find((d) => d.severity === "error") ?? faults[0];
  return worst ? exitCodeOf(worst.code) : exitCodes.ok;
}

/** no-color.org: any value that is not empty turns colours off. */
function useColors({ stderr, environment }: Surroundings): boolean {
  return stderr.isTTY === true && !environment.NO_COLOR;
}

function badArgument(issue: z.core.$ZodIssue, command: string, options: Options): Diagnostic {
  const name = String(issue.path[0] ?? "arguments");
  const option = `--${dashed(name)}`;
  const found = JSON.stringify(options[name]) ?? "nothing";
  return diagnostic("CLI001", `${option}: found ${found}, allowed: ${allowedBy(issue)}`, {
    at: option,
    help: `see wavetile ${command} --help`,
  });
}

/** What the schema would have taken, in words. */
function allowedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_value":
      return issue.values.join(", ");
    case "too_small":
      return `at least ${issue.minimum}`;
    case "too_big":
      return `at most ${issue.maximum}`;
    case "invalid_type":
      return issue.expected === "int" ? "a whole number" : `a ${issue.expected}`;
    default:
      return issue.message;
  }
}

/** The one JSON document of a command. */
export function envelope(
  name: string,
  result: Result<CommandResult>,
  meta: { readonly seed: unknown; readonly durationMs: number },
) {
  const schema = `wavetile/${name.replace(" ", "-")}/1`;
  const about = {
    version,
    seed: meta.seed === undefined ? null : Number(meta.seed),
    durationMs: meta.durationMs,
    target: (result.ok ? result.value.target : undefined) ?? null,
  };
  const faults = result.ok ? (result.value.failed ?? []) : result.diagnostics;
  const data = result.ok ? { data: result.value.data } : {};
  const warnings = result.ok ? result.warnings : faults.filter((d) => d.severity !== "error");
  const [first, ...more] = faults.filter((d) => d.severity === "error");
  const error = first && {
    ...spellFault(first),
    ...(more.length > 0 && { more: more.map(spellFault) }),
  };
  return {
    ok: faults.length === 0,
    schema,
    ...data,
    ...(error && { error }),
    warnings,
    meta: about,
  };
}

function spellFault({ code, message, at, notes, help }: Diagnostic) {
  return { code, message, at: at ?? null, notes, help: help ?? null };
}
