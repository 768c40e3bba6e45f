/**
 * The cases of the ONNX backend test suite that do not pass, a row each: the stages that fail and why. The
 * campaign fails when a row is missing and when one is no longer needed; conformance.test.ts keeps the table short.
 */

export type Stage = "oracle" | "wasm" | "cuda-interp";

/** Stages by the word of a row. */
const stages = {
  all: ["oracle", "wasm", "cuda-interp"],
  compiled: ["wasm", "cuda-interp"],
  /** Values of 16 bits stay so between nests: programs for CPUs keep them wider. */
  narrow: ["oracle", "cuda-interp"],
} as const satisfies Record<string, readonly Stage[]>;

/** Cases in the archive: 1,802 of single nodes and 23 simple models. */
export const caseCount = 1825;

const reasons = {
  decodedPictures: "ImageDecoder: picture formats are not decoded",
  ownRandomNumbers: "the expected numbers are those of the suite's random generator",
  bitsOfFloats: "BitCast between floats and integers has no op",
  roundedSteps: "the expected value is rounded once, the model's own steps round each time",
  noisyExpectation: "the expected zeros hold rounding noise above the suite's tolerance",
  dataDependentSizes: "sizes that data decide have no machine code",
} as const;

export type Row = readonly [name: string, fails: keyof typeof stages, why: keyof typeof reasons];

/** Every row, in the order of names. */
export const exceptions: readonly Row[] = [
  ["node/test_bernoulli", "all", "ownRandomNumbers"],
  ["node/test_bernoulli_double", "all", "ownRandomNumbers"],
  ["node/test_bernoulli_double_expanded", "all", "ownRandomNumbers"],
  ["node/test_bernoulli_expanded", "all", "ownRandomNumbers"],
  ["node/test_bernoulli_seed", "all", "ownRandomNumbers"],
  ["node/test_bernoulli_seed_expanded", "all", "ownRandomNumbers"],
  ["node/test_bitcast_2d_float32_to_int32", "all", "bitsOfFloats"],
  ["node/test_bitcast_float32_to_int32", "all", "bitsOfFloats"],
  ["node/test_bitcast_float64_to_int64", "all", "bitsOfFloats"],
  ["node/test_bitcast_int32_to_float32", "all", "bitsOfFloats"],
  ["node/test_bitcast_int64_to_float64", "all", "bitsOfFloats"],
  ["node/test_bitcast_scalar_float32_to_int32", "all", "bitsOfFloats"],
  ["node/test_celu_bfloat16_expanded", "narrow", "roundedSteps"],
  ["node/test_compress_0", "compiled", "dataDependentSizes"],
  ["node/test_compress_1", "compiled", "dataDependentSizes"],
  ["node/test_compress_default_axis", "compiled", "dataDependentSizes"],
  ["node/test_compress_negative_axis", "compiled", "dataDependentSizes"],
  ["node/test_dft_inverse", "all", "noisyExpectation"],
  ["node/test_dft_inverse_opset19", "all", "noisyExpectation"],
  ["node/test_image_decoder_decode_bmp_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_jpeg2k_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_jpeg_bgr", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_jpeg_grayscale", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_jpeg_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_png_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_pnm_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_tiff_rgb", "all", "decodedPictures"],
  ["node/test_image_decoder_decode_webp_rgb", "all", "decodedPictures"],
  ["node/test_nonmaxsuppression_center_point_box_format", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_flipped_coordinates", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_identical_boxes", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_iou_threshold_boundary", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_limit_output_size", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_single_box", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_suppress_by_IOU", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_suppress_by_IOU_and_scores", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_two_batches", "compiled", "dataDependentSizes"],
  ["node/test_nonmaxsuppression_two_classes", "compiled", "dataDependentSizes"],
  ["node/test_nonzero_example", "compiled", "dataDependentSizes"],
  ["node/test_range_bfloat16_type_positive_delta_expanded", "compiled", "dataDependentSizes"],
  ["node/test_range_float16_type_positive_delta_expanded", "compiled", "dataDependentSizes"],
  ["node/test_range_float_type_positive_delta_expanded", "compiled", "dataDependentSizes"],
  ["node/test_range_int32_type_negative_delta_expanded", "compiled", "dataDependentSizes"],
  ["node/test_training_dropout", "all", "ownRandomNumbers"],
  ["node/test_training_dropout_default", "all", "ownRandomNumbers"],
  ["node/test_training_dropout_default_mask", "all", "ownRandomNumbers"],
  ["node/test_training_dropout_mask", "all", "ownRandomNumbers"],
  ["node/test_unique_length_1", "compiled", "dataDependentSizes"],
  ["node/test_unique_not_sorted_without_axis", "compiled", "dataDependentSizes"],
  ["node/test_unique_sorted_with_axis", "compiled", "dataDependentSizes"],
  ["node/test_unique_sorted_with_axis_3d", "compiled", "dataDependentSizes"],
  ["node/test_unique_sorted_with_negative_axis", "compiled", "dataDependentSizes"],
  ["node/test_unique_sorted_without_axis", "compiled", "dataDependentSizes"],
];

const byName = new Map(exceptions.map((row) => [row[0], row]));

export function failsAt([, fails]: Row, stage: Stage): boolean {
  return (stages[fails] as readonly Stage[]).includes(stage);
}

/** The reason why a case fails at a stage, if it is listed there. */
export function exceptionFor(name: string, stage: Stage): string | undefined {
  const row = byName.get(name);
  if (!row || !failsAt(row, stage)) return undefined;
  return reasons[row[2]];
}
