/** Weights as signed bytes, the way onnxruntime's quantiser makes them. */

/** Symmetric int8 with one scale for each `terms` values in a row. */
export function quantizeRows(
  values: Float32Array,
  terms: number,
): { readonly values: Int8Array; readonly scales: Float32Array } {
  const scales = new Float32Array(values.length / terms);
  for (let i = 0; i < values.length; i++) {
    const row = Math.floor(i / terms);
    scales[row] = Math.max(scales[row]!, Math.abs(values[i]!) / 127);
  }
  const rounded = Int8Array.from(values, (x, i) => Math.round(x / scales[Math.floor(i / terms)]!));
  return { values: rounded, scales };
}
