/**
 * Reads files out of an npm package archive (gzip over POSIX ustar, "pax interchange format" of the
 * POSIX.1-2017 pax page): regular files only, into memory. Links, devices, absolute paths and paths
 * with `..` are refused, and so is an archive that grows past the given size, so nothing can be
 * written outside the caller's folder and nothing can exhaust memory.
 */
import { gunzipSync } from "node:zlib";
import { reject } from "../../src/support/diagnostic.ts";

const blockBytes = 512;

/** Path inside the archive (without the leading `package/`) to contents; throws DiagnosticError. */
export function readPackageArchive(
  archive: Uint8Array,
  maxBytes: number,
): ReadonlyMap<string, Uint8Array> {
  const tar = gunzipLimited(archive, maxBytes);
  const files = new Map<string, Uint8Array>();
  let at = 0;
  while (at + blockBytes <= tar.length && tar[at] !== 0) {
    const header = tar.subarray(at, at + blockBytes);
    checkSum(header);
    const size = octal(header, 124, 12);
    const path = entryPath(header);
    const type = String.fromCharCode(header[156]!);
    const body = tar.subarray(at + blockBytes, at + blockBytes + size);
    if (body.length < size) refuse(`${path} ends after ${body.length} of ${size} bytes`);
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes;
    if (type === "g" || type === "5") continue;
    if (type !== "0" && type !== "\0") refuse(`${path} is no regular file (type ${type})`);
    files.set(safePath(path), body);
  }
  return files;
}

function gunzipLimited(archive: Uint8Array, maxBytes: number): Uint8Array {
  try {
    return gunzipSync(archive, { maxOutputLength: maxBytes });
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    return refuse(`it does not decompress to at most ${maxBytes} bytes (${String(error.code)})`);
  }
}

/** The header's bytes summed with its own checksum field read as spaces. */
function checkSum(header: Uint8Array): void {
  let sum = 0;
  for (let i = 0; i < blockBytes; i++) sum += i >= 148 && i < 156 ? 0x20 : header[i]!;
  if (sum !== octal(header, 148, 8)) refuse("a header's checksum is wrong");
}

function octal(header: Uint8Array, start: number, length: number): number {
  const text = fieldText(header, start, length).trim();
  if (!/^[0-7]+$/.test(text)) refuse(`a number of a header reads "${text}"`);
  return Number.parseInt(text, 8);
}

/** ustar splits a long path into a prefix and a name. */
function entryPath(header: Uint8Array): string {
  const prefix = fieldText(header, 345, 155);
  const name = fieldText(header, 0, 100);
  return prefix === "" ? name : `${prefix}/${name}`;
}

function fieldText(header: Uint8Array, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return Buffer.from(end === -1 ? field : field.subarray(0, end)).toString("utf8");
}

/** npm puts everything below one folder, usually `package`; that folder is dropped. */
function safePath(path: string): string {
  const parts = path.split("/");
  const unsafe = path.startsWith("/") || path.includes("\\") || parts.includes("..");
  if (unsafe || parts.length < 2) refuse(`the path ${JSON.stringify(path)} leaves the package`);
  return parts.slice(1).join("/");
}

function refuse(what: string): never {
  return reject("FET003", `the package archive cannot be read: ${what}`, {
    help: "delete the file from the cache and run the command again",
  });
}
