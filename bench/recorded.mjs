/** Recorded sessions of agents, cut at a message of the agent: what came before, as each method would show it. */

import { compact } from "context-compactor";
import { transcripts } from "../tests/support/transcripts.mjs";

/** Characters of a session of some length, as JSON. */
const LONG = 150_000;
const CLEARED = "[Old tool result content cleared]";
/** Results that masking leaves, the newest: few, since contexts are small. */
const UNMASKED = 1;

/** `{ id, at, messages }`: long sessions that no default was chosen by, `count` of them, and where each is cut. */
export function cuts(count) {
  const records = ["full/anthropic/claude_code_entire_cli", "full/anthropic/claude_code_entirecontext"].flatMap((name) => transcripts(name) ?? []);
  const long = records.filter(({ messages }) => JSON.stringify(messages).length > LONG).filter((_, nth) => nth % 2 === 1);
  const step = Math.max(1, long.length / count);
  return long
    .filter((_, nth) => Math.floor(nth / step) !== Math.floor((nth - 1) / step))
    .slice(0, count)
    .map(({ id, messages }) => {
      const isTelling = (message, nth) => nth >= messages.length / 2 && message.role === "assistant" && render([message]).length > 300;
      return { id, at: messages.findIndex(isTelling), messages };
    })
    .filter(({ at }) => at > 0);
}

/** Messages as a model without roles reads them. */
export function render(messages) {
  return messages.map(({ role, content }) => `${role}: ${said(content)}`).join("\n\n");
}

function said(content) {
  if (typeof content === "string") return content;
  return content.map(({ type, text, name, input, content }) => text ?? (type === "tool_use" ? `${name} ${JSON.stringify(input)}` : said(content ?? ""))).join("\n");
}

/** The history with all results but the newest cleared. */
export function masked(messages) {
  const results = messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(({ type }) => type === "tool_result") : []));
  const old = new Set(results.slice(0, -UNMASKED));
  const cleared = (block) => (old.has(block) ? { ...block, content: CLEARED } : block);
  return messages.map((message) => (Array.isArray(message.content) ? { ...message, content: message.content.map(cleared) } : message));
}

/** What `balanced` puts in the place of the past without a model: its page. */
export async function page(messages, contextWindow) {
  const { messages: left } = await compact(messages, { contextWindow, logger: () => {} });
  return render(left.slice(0, 1));
}
