/**
 * External data: tensors whose bytes lie in another file beside the model (ONNX, "External Data").
 * Here the reference is read out of a TensorProto and its path is judged as text: relative, inside the
 * model's folder, no scheme, no backslash. That the real file is no symbolic link out of the folder is
 * for whoever opens it (runtime/files/), behind the injected `ReadExternal`.
 */
import { type Result, reject } from "../../support/diagnostic.ts";
import type { StringStringEntryProto, TensorProto } from "./generated/onnx_pb.ts";

/** A byte range of a file, relative to the folder of the model. */
export interface ExternalRange {
  readonly location: string;
  readonly offset: number;
  /** Bytes; undefined when the file does not say: then what the tensor's type and shape need. */
  readonly length?: number;
}

/** Reads exactly `length` bytes of a file in the model's folder, or says why it cannot. */
export type ReadExternal = (location: string, offset: number, length: number) => Result<Uint8Array>;

/** The reference of an external tensor; rejects bad paths (ONX006) and ranges (ONX005). */
export function readExternalRange(proto: TensorProto, at: string): ExternalRange {
  const entries = new Map(proto.externalData.map((e: StringStringEntryProto) => [e.key, e.value]));
  const location = entries.get("location") ?? "";
  checkLocation(location, at);
  const offset = readCount(entries.get("offset"), "offset", at) ?? 0;
  const length = readCount(entries.get("length"), "length", at);
  return { location, offset, ...(length !== undefined && { length }) };
}

function readCount(text: string | undefined, key: string, at: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    reject("ONX005", `external data ${key} is ${JSON.stringify(text)}, not a byte count`, {
      at,
      help: "write the model again with external data",
    });
  }
  return value;
}

/** Rejects (ONX006) a location that could leave the folder of the model. */
function checkLocation(location: string, at: string): void {
  const parts = location.split("/");
  const printable = ![...location].some((c) => c.charCodeAt(0) < 32);
  const inside = parts.every((part) => part !== "" && part !== "." && part !== "..");
  if (printable && inside && !location.includes("\\") && !/^[A-Za-z][\w+.-]*:/.test(location)) {
    return;
  }
  reject("ONX006", `external data location ${JSON.stringify(location)} is not allowed`, {
    at,
    help: "use a path relative to the model's folder, with / between names and without . or ..",
  });
}
