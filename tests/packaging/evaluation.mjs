/**
 * What the packaging tests do with the package `context-compactor-evaluator`, which needs no engine: it has a module of its
 * own. Runs in every host.
 */
export async function evaluation(evaluator) {
  const messages = Array.from({ length: 60 }, (_, nth) => [
    { role: "user", content: `Look at src/harbour/file${nth}.ts. `.repeat(30) },
    { role: "assistant", content: nth < 30 ? "It is fine." : `As src/harbour/file${nth - 30}.ts, which opens the harbour.` },
  ]).flat();
  const transcript = { messages, stableTokens: 1_000 };
  const { prices } = (await evaluator.baselines()).prices[0];
  const [none, summaries] = await evaluator.replay(
    transcript,
    [{ kind: "none" }, { kind: "threshold", at: 8_000, keep: 1_000 }],
    prices,
    { optimum: true },
  );
  const { cuts } = await evaluator.recall(transcript, (before) => before, [1], { cutting: { prefixTokens: 4_000, needs: 1 } });
  const error = await evaluator.replay(transcript, "nobody's", prices).catch((error) => error);
  return {
    calls: none.calls,
    compactions: [none.compactions, summaries.compactions > 0],
    optimum: none.optimum < none.cost && none.optimum <= summaries.cost,
    recall: [cuts.length > 0, cuts.every(({ scores: [{ mention }] }) => mention === 1)],
    error: [error instanceof evaluator.CompactionError, error.code],
  };
}

/** What `evaluation` returns, as JSON. */
export const expectedEvaluation = {
  calls: 60,
  compactions: [0, true],
  optimum: true,
  recall: [true, true],
  error: [true, "invalid_option"],
};
