/** Estimates of tokens, by an engine that runs. The entries `tokens-….ts` start it, and say what each function does. */

import { checkOptions, plainOptions } from "./checks.js";
import { run } from "./driver.js";
import { started } from "./engine.js";
import { estimateText } from "./text.js";
import { readFormat } from "./translation.js";
import type { Message } from "./types.js";
import type { TokenEstimate, TokenInput, TokenOptions } from "./types/tokens.js";

export async function ready(options: { model?: string } = {}): Promise<void> {
  checkOptions(options, ["model"]);
  await started();
  estimateText("", "calibrated", options.model);
}

export function estimateTokens(input: TokenInput, options?: TokenOptions): number {
  if (options !== undefined) checkOptions(options, ["estimator", "format", "model"]);
  if (typeof input === "string") return estimateText(input, options?.estimator, options?.model);
  const { format, codec } = readFormat(options?.format);
  const { bytes, ends } = codec.pack(listed(input));
  const given = plainOptions({ ...options, format });
  return run((engine) => engine.estimateMessages(bytes, ends, given)).reduce((sum, tokens) => sum + tokens, 0);
}

export function estimateTokensDetailed(input: TokenInput, options: TokenOptions = {}): TokenEstimate {
  checkOptions(options, ["estimator", "format", "model"]);
  const { format, codec } = readFormat(options.format);
  const given = plainOptions({ ...options, format });
  if (typeof input === "string") return run((engine) => engine.estimateTextDetailed(input, given)) as TokenEstimate;
  const { bytes, ends } = codec.pack(listed(input));
  return run((engine) => engine.estimateDetailed(bytes, ends, given)) as TokenEstimate;
}

function listed(input: Message | readonly Message[]): readonly Message[] {
  return Array.isArray(input) ? (input as Message[]) : [input];
}
