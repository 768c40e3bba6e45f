/**
 * The pictures that the demo reads and the text that a person reads in them. Source and licence of
 * each picture stand in README.md beside this file.
 */

export interface Page {
  readonly file: string;
  readonly title: string;
  /** One entry a line of text, top to bottom. */
  readonly lines: readonly string[];
  /**
   * Share of characters that may be misread: what the models themselves get wrong in this picture,
   * rounded up (a space lost between words, the typewriter's letter l that stands for the digit 1).
   */
  readonly errorShare: number;
}

export const pages: readonly Page[] = [
  {
    file: "page.png",
    title: "photograph of a printed page",
    lines: [
      "Region-based segmentation",
      "Let us first determine markers of the coins and the",
      "background. These markers are pixels that we can label",
      "unambiguously as either object or background. Here,",
      "the markers are found at the two extreme parts of the",
      "histogram of grey values:",
      ">>> markers = np.zeros_like(coins)",
    ],
    errorShare: 0.06,
  },
  {
    file: "typewriter.png",
    title: "scan of a typewritten recipe",
    lines: [
      "Linzensoep à la Waterman",
      "4 ons linzen",
      "3 liter water",
      "3 uien",
      "bloem, boter",
      "2 kopjes melk",
      "laurier, kruidnagel, kerrie, zout",
      "De linzen wassen en in 1 liter kokend wa-",
      "ter 1 dag laten weken. 2 liter water bij",
      "de linzen voegen, zonder het water waarin",
      "ze geweekt zijn af te gieten. De helft van",
      "de uien bakken met laurier en kruidnagel.",
      "Alle uien, kerrie en zout bij de linzen",
      "voegen. Alles aan de kook brengen. Van de",
      "bloem met boter en melk een papje maken en",
      "verder afmaken met de soep. Als de linzen",
      "gaar zijn is de soep klaar.",
    ],
    errorShare: 0.03,
  },
];
