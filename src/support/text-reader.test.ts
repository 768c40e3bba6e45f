import { describe, expect, it } from "vitest";
import { attempt } from "./diagnostic.ts";
import { TextReader, tokenize } from "./text-reader.ts";

describe("tokenize", () => {
  it("splits names, numbers, strings and punctuation and drops comments", () => {
    const tokens = tokenize('x.1 = -> 2.5e-3 "a\\"b" # rest\n}');
    expect(tokens.map((t) => [t.kind, t.text, t.line])).toEqual([
      ["name", "x.1", 1],
      ["punctuation", "=", 1],
      ["punctuation", "->", 1],
      ["number", "2.5e-3", 1],
      ["string", 'a"b', 1],
      ["punctuation", "}", 2],
      ["end", "end of text", 2],
    ]);
  });

  it("refuses an unknown character with TXT001 and the line", () => {
    const result = attempt(() => tokenize("a\n`"));
    expect(result).toMatchObject({ ok: false, diagnostics: [{ code: "TXT001", at: "line 2" }] });
  });
});

describe("TextReader", () => {
  it("reads signed and non-finite numbers and lists", () => {
    const reader = new TextReader("-3, inf, -inf)");
    expect(reader.list(")", () => reader.number())).toEqual([-3, Infinity, -Infinity]);
  });

  it("says what was expected and found", () => {
    const result = attempt(() => new TextReader("x").expect("("));
    expect(result).toMatchObject({
      diagnostics: [{ message: 'expected "(", found "x"' }],
    });
  });
});
