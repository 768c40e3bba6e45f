/** Writes small ustar archives, honest and hostile, for the tests of the archive reader and fetcher. */
import { gzipSync } from "node:zlib";

export interface ArchiveEntry {
  readonly path: string;
  readonly body: string;
  /** ustar type flag; a regular file unless given. */
  readonly type?: string;
}

export function writeArchive(
  entries: readonly ArchiveEntry[],
  { damageHeader = false }: { readonly damageHeader?: boolean } = {},
): Uint8Array {
  const blocks = entries.flatMap(({ path, body, type = "0" }) => {
    const header = writeHeader(path, body.length, type);
    if (damageHeader) header[5]! ^= 1;
    const content = Buffer.alloc(Math.ceil(body.length / 512) * 512);
    content.write(body);
    return [header, content];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

function writeHeader(path: string, size: number, type: string): Buffer {
  const header = Buffer.alloc(512);
  const cut = path.length > 100 ? path.lastIndexOf("/", 154) : -1;
  header.write(path.slice(cut + 1), 0);
  header.write("0000644\0", 100);
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  header.write("        ", 148);
  header.write(type, 156);
  header.write("ustar\x0000", 257, "latin1");
  if (cut > 0) header.write(path.slice(0, cut), 345);
  const sum = header.reduce((a, b) => a + b, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
