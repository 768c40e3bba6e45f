/** The text of a golden file: a line about its subject, then sections `== name`, one a text form. */
export type Sections = ReadonlyMap<string, string>;

export function printGolden(about: string, sections: Sections): string {
  const parts = [...sections].map(([name, text]) => `== ${name}\n${text}`);
  return `# ${about}\n\n${parts.join("\n")}`;
}

/** Text that begins behind the line of a section and ends before the empty line ahead of the next. */
export function parseGolden(text: string): Sections {
  const [, ...parts] = text.split(/^== /m);
  return new Map(
    parts.map((part, i) => {
      const end = part.indexOf("\n");
      const body = part.slice(end + 1);
      return [part.slice(0, end), i < parts.length - 1 ? body.replace(/\n$/, "") : body];
    }),
  );
}
