/** Paths of this machine's file system. */
import { resolve } from "node:path";

export { basename as baseName, join } from "node:path";

/** Whether two paths are spelled alike once they are absolute. */
export function samePath(a: string, b: string): boolean {
  return resolve(a) === resolve(b);
}
