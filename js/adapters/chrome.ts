/** Summaries by the model that is built into Chrome. */

import { CompactionError } from "../errors.js";
import type { Summarize } from "../types.js";

/** What is used of Chrome's `LanguageModel`, by its names of now and of before. */
interface Model {
  availability(): Promise<"unavailable" | "downloadable" | "downloading" | "available">;
  create(options: { initialPrompts: { role: "system"; content: string }[]; signal: AbortSignal }): Promise<ModelSession>;
}
interface ModelSession {
  contextWindow?: number;
  inputQuota?: number;
  measureContextUsage?(text: string): Promise<number>;
  measureInputUsage?(text: string): Promise<number>;
  prompt(text: string, options: { signal: AbortSignal }): Promise<string>;
  destroy(): void;
}

/**
 * Writes summaries with the model that is built into Chrome: `openSession({ summarize: chrome() })`. No key and no network are
 * needed once the model is there. A history that it cannot hold is summarized in parts. Rejects with `summary_failed` where
 * there is no such model, and where it must be downloaded first: call `LanguageModel.create()` in a click of the user.
 */
export function chrome(): Summarize {
  return async ({ system, messages, maxTokens }, { signal }) => {
    const model = (globalThis as { LanguageModel?: Model }).LanguageModel;
    const state = (await model?.availability()) ?? "unavailable";
    if (!model || state === "unavailable") throw failed("this browser has no built-in model (LanguageModel)");
    const { userActivation } = (globalThis.navigator ?? {}) as { userActivation?: { isActive: boolean } };
    if (state !== "available" && !userActivation?.isActive) {
      throw failed("Chrome's model must be downloaded first: call LanguageModel.create() in a click of the user");
    }
    let inputTokens = 0;
    let outputTokens = 0;
    /** One answer; nothing when the text does not fit. */
    async function ask(text: string): Promise<string | undefined> {
      const session = await (model as Model).create({ initialPrompts: [{ role: "system", content: system }], signal });
      try {
        const measure = (text: string) => (session.measureContextUsage ?? session.measureInputUsage)?.call(session, text) ?? 0;
        const used = await measure(text);
        if (used + maxTokens > (session.contextWindow ?? session.inputQuota ?? Infinity)) return undefined;
        const answer = await session.prompt(text, { signal });
        inputTokens += used;
        outputTokens += await measure(answer);
        return answer;
      } finally {
        session.destroy();
      }
    }
    async function summary(text: string): Promise<string> {
      const whole = await ask(text);
      if (whole !== undefined) return whole;
      const middle = halfOf(text);
      if (middle === 0) throw failed("the model's window does not hold a line of the request and the answer");
      const parts = `${await summary(text.slice(0, middle))}\n\n${await summary(text.slice(middle))}`;
      // Two summaries that are no shorter would be halved forever.
      return parts.length < text.length ? summary(parts) : parts;
    }
    const text = await summary(messages.map(({ content }) => content).join("\n\n"));
    return inputTokens > 0 ? { text, usage: { inputTokens, outputTokens } } : text;
  };
}

/** Where the text is halved: at the end of a line; 0 when it is too short. */
function halfOf(text: string): number {
  if (text.length < 200) return 0;
  const line = text.indexOf("\n", text.length / 2) + 1;
  if (line > 0 && line < text.length * 0.9) return line;
  const half = Math.floor(text.length / 2);
  // Not within a character of two units.
  return /[\uDC00-\uDFFF]/.test(text[half] ?? "") ? half - 1 : half;
}

function failed(message: string): CompactionError {
  return new CompactionError("summary_failed", message);
}
