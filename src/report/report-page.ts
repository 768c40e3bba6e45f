/** A report as one HTML file that needs nothing else: a heading, facts, pictures with what they show. */
import { escapeXml, type Picture } from "./svg.ts";

export interface ReportPage {
  readonly title: string;
  /** Lines of plain text under the title. */
  readonly facts: readonly string[];
  readonly pictures: readonly PlacedPicture[];
  /** Pictures that are not there, and what they need. */
  readonly missing: readonly { readonly name: string; readonly needs: string }[];
}

/** A picture of the whole model, or of a part of it, which stands before its heading. */
export interface PlacedPicture extends Picture {
  readonly part?: string;
}

const headings: Readonly<Record<string, string>> = {
  funnel: "Elimination: from every state to the chosen ones",
  collapse: "Collapse: each region's superposition, step by step",
  gap: "Gap over time",
  price: "Price and roofline",
  breakdown: "What prices are made of",
  layers: "Layers and layouts",
  measured: "Predicted against measured",
  calibration: "Predicted against measured: the samples of the calibration",
  machines: "One model across machines",
};

function headingOf(name: string, part: string | undefined): string {
  return `${part === undefined ? "" : `${part}. `}${headings[name] ?? name}`;
}

function idOf(name: string, part: string | undefined): string {
  return part === undefined ? name : `${part.replace(/\W+/g, "-")}-${name}`;
}

export function reportPage({ title, facts, pictures, missing }: ReportPage): string {
  const body = [
    `<h1>${escapeXml(title)}</h1>`,
    ...facts.map((fact) => `<p>${escapeXml(fact)}</p>`),
    ...pictures.flatMap(({ name, svg, part }) => [
      `<h2 id="${escapeXml(idOf(name, part))}">${escapeXml(headingOf(name, part))}</h2>`,
      svg.trimEnd(),
    ]),
    ...(missing.length > 0 ? ["<h2>Not drawn</h2>"] : []),
    ...missing.map(
      ({ name, needs }) => `<p>${escapeXml(`${headings[name] ?? name}: ${needs}`)}</p>`,
    ),
  ];
  return [
    "<!doctype html>",
    '<html lang="en">',
    `<head><meta charset="utf-8"><title>${escapeXml(title)}</title>`,
    "<style>body{font-family:sans-serif;max-width:800px;margin:2em auto;padding:0 1em;color:#222}svg{max-width:100%;height:auto}p{margin:.3em 0}h2{margin-top:1.6em;font-size:1.1em}</style>",
    "</head>",
    `<body>`,
    ...body,
    "</body></html>",
    "",
  ].join("\n");
}
