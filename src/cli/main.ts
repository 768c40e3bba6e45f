#!/usr/bin/env node
/**
 * The command line: arguments by the registry's schemas, one call, one answer. stdout has the result,
 * stderr all else. What a command does is in commands/.
 */
import { runCommandLine } from "./command-line.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  now: () => performance.now(),
});
