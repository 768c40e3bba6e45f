#!/usr/bin/env node
/**
 * The command line: arguments by the registry's schemas, one call, one answer. stdout has the result,
 * stderr all else. What a command does is in commands/.
 */
import { keepCompiledCode } from "../runtime/compiled-code.ts";
import { expectShortRun } from "../runtime/engine-flags.ts";
import { runCommandLine } from "./command-line.ts";

expectShortRun();
keepCompiledCode();

// A reader that has enough (`| head`) closes the pipe: that is no fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

process.exitCode = await runCommandLine(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  now: () => performance.now(),
  // Without a listener an interrupt ends the process at once, which shells report as 130.
  onInterrupt: (stop) => process.once("SIGINT", stop),
});
