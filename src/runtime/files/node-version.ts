/** The version of Node.js that runs this. */
export const nodeVersion: string = process.versions.node;
