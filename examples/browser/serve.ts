/** A static server on this machine alone, with the headers that isolate a page or without them. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".png": "image/png",
  ".txt": "text/plain; charset=utf-8",
};

export interface Site {
  readonly url: string;
  close(): void;
}

export interface ServeOptions {
  readonly isolated: boolean;
  /** 0: any free one. */
  readonly port: number;
}

export async function serve(folder: string, { isolated, port }: ServeOptions): Promise<Site> {
  const isolation = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
  };
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://local").pathname);
    const name = normalize(path === "/" ? "/index.html" : path);
    const bytes = await readFile(join(folder, name)).catch(() => undefined);
    const type = types[extname(name)] ?? "application/octet-stream";
    response.writeHead(bytes ? 200 : 404, { "Content-Type": type, ...(isolated && isolation) });
    response.end(bytes ?? "not here");
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const { port: taken } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${taken}/`, close: () => server.close() };
}
