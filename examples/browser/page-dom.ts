/**
 * What the page uses of a browser. The project is checked without the DOM library, whose globals would
 * then be there for all of its code; these few names are spelled out instead.
 */

interface PageElement {
  textContent: string | null;
  disabled?: boolean;
  value?: string;
  readonly files?: ArrayLike<Blob>;
  readonly dataset: Record<string, string>;
  addEventListener(kind: "click" | "change", listener: () => void): void;
}

interface Bitmap {
  readonly width: number;
  readonly height: number;
}

interface PixelCanvas {
  getContext(kind: "2d"): {
    drawImage(picture: Bitmap, x: number, y: number): void;
    getImageData(x: number, y: number, w: number, h: number): { readonly data: Uint8ClampedArray };
  };
}

interface BrowserGlobals {
  readonly document: { getElementById(id: string): PageElement | null };
  readonly crossOriginIsolated: boolean;
  readonly OffscreenCanvas: new (width: number, height: number) => PixelCanvas;
  createImageBitmap(
    blob: Blob,
    options: { readonly colorSpaceConversion: "none"; readonly premultiplyAlpha: "none" },
  ): Promise<Bitmap>;
}

const browser = globalThis as unknown as BrowserGlobals;

export const isIsolated = browser.crossOriginIsolated;

export function element(id: string): PageElement {
  const found = browser.document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** The pixels of a picture file as it stores them: red, green, blue and opacity, row by row. */
export async function readPixels(
  file: Blob,
): Promise<Bitmap & { readonly rgba: Uint8ClampedArray }> {
  const options = { colorSpaceConversion: "none", premultiplyAlpha: "none" } as const;
  const bitmap = await browser.createImageBitmap(file, options);
  const { width, height } = bitmap;
  const context = new browser.OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  return { width, height, rgba: context.getImageData(0, 0, width, height).data };
}
