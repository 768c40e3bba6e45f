/** Paths of this machine's file system. */
export { join } from "node:path";
