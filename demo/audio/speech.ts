/**
 * Silero's voice activity detector as a stream: windows of 512 samples at 16 kHz, each preceded by
 * the last 64 samples before it, the recurrent state fed back from run to run.
 */
import {
  float32Tensor,
  type Session,
  type Tensor,
  takeFloat32,
} from "../../bench/sessions/session.ts";
import { sampleRate } from "./signal.ts";

const windowSamples = 512;
const contextSamples = 64;

/** Probability of speech in each whole window of the signal. */
export async function detectSpeech(session: Session, signal: Float32Array): Promise<number[]> {
  const probabilities: number[] = [];
  let state: Tensor = float32Tensor([2, 1, 128], new Float32Array(256));
  const sr: Tensor = { type: "int64", dims: [], data: BigInt64Array.from([BigInt(sampleRate)]) };
  const padded = new Float32Array(contextSamples + signal.length);
  padded.set(signal, contextSamples);
  for (let at = 0; at + windowSamples <= signal.length; at += windowSamples) {
    const input = padded.slice(at, at + contextSamples + windowSamples);
    const outputs = await session.run({
      input: float32Tensor([1, input.length], input),
      state,
      sr,
    });
    probabilities.push(takeFloat32(outputs, "output").data[0]!);
    state = takeFloat32(outputs, "stateN");
  }
  return probabilities;
}
