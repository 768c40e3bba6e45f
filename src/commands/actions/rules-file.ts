/** The file of `--rules`: a JSON list of rewrite rules as docs/adding-a-rule.md writes them. */
import type { RewriteMode } from "../../rewrite/families/index.ts";
import type { RuleRow } from "../../rewrite/rule-row.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import {
  FileReader,
  listOf,
  numberIn,
  objectOf,
  oneOf,
  optional,
  type Rules,
  required,
  text,
} from "../../target/file-reader.ts";

/** What a file can say of a rule: right sides are patterns. */
type TextRule = Omit<RuleRow, "right" | "beside"> & { readonly right: string };

const rules: Rules<TextRule> = {
  name: required(text),
  numerics: required(oneOf(["exact", "reassociates", "approximates"])),
  left: required(text),
  right: required(text),
  where: optional(text),
  sample: optional(text),
  errorBound: optional(numberIn({ least: 0, most: 1 })),
};

const help = "docs/adding-a-rule.md, rules of your own, shows such a file";

export function readRules(
  path: string | undefined,
  rewrite: RewriteMode = "off",
): Result<readonly RuleRow[]> {
  if (path === undefined) return ok([]);
  if (rewrite === "off") {
    const message = "rules are used where the graph is rewritten, and it is not";
    const help = "ask for it: --rewrite on, of explain --rewrite or --rewritten on";
    return fail(diagnostic("CLI001", message, { at: `--rules ${path}`, help }));
  }
  const bytes = readWhole(path);
  if (!bytes.ok) return bytes;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes.value));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `a file of rules is JSON, and this is not: ${error.message}`;
    return fail(diagnostic("CLI001", message, { at: `--rules ${path}`, help }));
  }
  const reader = new FileReader({ key: "CLI001", number: "CLI001" });
  const read = listOf(objectOf(rules), 1)(reader, value, "rules");
  if (read && reader.faults.length === 0) return ok(read);
  return fail(...reader.faults.map((d) => ({ ...d, notes: [...d.notes, help] })));
}
