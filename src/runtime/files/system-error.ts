/** Errors of the operating system as values: which code a failed file call gave, and what it means. */

/** The code (`ENOENT`) of an error that a call of node:fs threw; anything else is thrown on. */
export function systemCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  throw error;
}

const meanings: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EACCES: "access is denied",
  EPERM: "access is denied",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is no folder",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  ELOOP: "its symbolic links go in circles",
  ENAMETOOLONG: "its name is too long",
  ERR_FS_FILE_TOO_LARGE: "it is too large to be read at once",
};

/** What a code means for the reader of a message; codes without an entry stand for themselves. */
export function describeCode(code: string): string {
  return meanings[code] ?? code;
}
