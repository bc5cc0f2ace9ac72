/** Token counts of the AI SDK, as the package has them. */

/** The counts of a model's answer: numbers, or groups of them in models of the third version of the interface and later. */
interface SdkUsage {
  inputTokens?: Count;
  outputTokens?: Count;
  cachedInputTokens?: number;
}
type Count = number | { total?: number; cacheRead?: number; cacheWrite?: number };

/** Nothing where the provider did not count. */
export function usageOf(usage: unknown): { inputTokens: number; outputTokens: number } | undefined {
  const { inputTokens, outputTokens, cachedInputTokens } = Object(usage) as SdkUsage;
  const [input, output] = [inputTokens, outputTokens].map((count) => (typeof count === "number" ? { total: count } : (count ?? {})));
  if (typeof input?.total !== "number" || !(input.total > 0)) return undefined;
  const read = input.cacheRead ?? cachedInputTokens;
  return {
    inputTokens: input.total,
    outputTokens: output?.total ?? 0,
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(input.cacheWrite === undefined ? {} : { cacheWriteTokens: input.cacheWrite }),
  };
}
