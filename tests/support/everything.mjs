/**
 * What must come out the same on every host, to the byte. Runs in every host, so it uses nothing but the package and
 * standard JavaScript. Each value is the JSON text of one result.
 */
export async function everything(library, messages) {
  const format = await library.detectFormat(messages);
  const result = await library.compact(messages, {
    preset: "offload",
    summarize: async (request, { attempt, purpose }) => scripted(request, attempt, purpose),
    advanced: { runtime: counted() },
  });
  const split = await library.splitMessages(messages, { keep: { fraction: 0.3 } });
  const session = await library.openSession({ id: "the same", store: library.memoryStore(), advanced: { runtime: counted() } });
  await session.append(...messages);
  const prepared = await session.prepare();
  const told = {
    format,
    "estimateTokens of the history": library.estimateTokens(messages),
    "estimateTokens of each message": messages.map((message) => library.estimateTokens(message)),
    "estimateTokens by chars4": library.estimateTokens(messages, { estimator: "chars4" }),
    "estimateTokens of a text": library.estimateTokens(JSON.stringify(messages)),
    splitMessages: { ...split, toCompress: split.toCompress.length, toPreserve: split.toPreserve },
    buildSummaryPrompt: await library.buildSummaryPrompt(messages, { targetTokens: 3_000, maxInputTokens: 60_000 }),
    extractiveSummary: await library.extractiveSummary(messages, { targetTokens: 2_000 }),
    validateHistory: await library.validateHistory(messages, { strict: true }),
    repairHistory: (await library.repairHistory(messages.slice(3))).changes,
    planCompaction: await library.planCompaction(messages, { advanced: { runtime: counted() } }),
    "compact: messages and ledger": { messages: result.messages, ledger: result.ledger },
    "compact: the rest": { ...result, messages: undefined, ledger: undefined },
    "session: prepare": prepared,
    "session: explain": (await session.context.explain()),
    "session: search": await session.recall.search("error in src/parser.rs", { limit: 30 }),
    "session: tools": session.recall.tools(format).definitions,
  };
  await session.close();
  return Object.fromEntries(Object.entries(told).map(([name, value]) => [name, JSON.stringify(value)]));
}

/** A clock and ids that are the same at every run. */
function counted() {
  let [clock, ids] = [1_700_000_000_000, 0];
  return { now: () => (clock += 7), id: () => `id-${ids++}` };
}

/** A summary that depends on every character of the request. */
function scripted(request, attempt, purpose) {
  const facts = request.facts.map(({ kind, text }) => `- ${kind}: ${text}`).join("\n");
  return `## Current Status\nAsked ${digest(JSON.stringify(request))}, attempt ${attempt}, ${purpose}.\n\n## Key Decisions\n${facts}`;
}

/** FNV-1a of the UTF-16 code units. */
function digest(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash.toString(16);
}
