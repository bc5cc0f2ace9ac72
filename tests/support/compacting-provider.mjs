/**
 * A server that compacts as Anthropic and OpenAI do, by the shapes of their published documentation (`tests/fixtures/server.json`):
 * it has seen no endpoint of theirs. It counts four characters as a token.
 */

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";

const SHAPES = JSON.parse(await readFile(new URL("../fixtures/server.json", import.meta.url), "utf8"));

const size = (value) => Math.ceil(JSON.stringify(value).length / 4);
const isItem = ({ type }) => type === "compaction";

/** What is left of a prompt: the provider ignores what stands before its newest item. */
function anthropicKept(messages) {
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : [{ type: "text", text: content }]));
  return blocks.slice(Math.max(blocks.findLastIndex(isItem), 0));
}

function anthropic({ messages, context_management, max_tokens }, headers, nth) {
  const beta = headers["anthropic-beta"] ?? "";
  const blocks = anthropicKept(messages);
  const edit = context_management?.edits.find(({ type }) => type === "compact_20260112");
  if ((edit || blocks.some(isItem)) && !beta.includes("compact-2026-01-12")) return [400, refused("context_management: Extra inputs are not permitted")];
  if (typeof max_tokens !== "number") return [400, refused("max_tokens: Field required")];
  if (blocks.some(isItem) && !isItem(blocks[0])) return [400, refused("messages: compaction blocks")];
  const tokens = size(blocks);
  const compacts = edit && edit.trigger.value >= 50_000 && tokens >= edit.trigger.value;
  return [200, fill(SHAPES.anthropic[compacts ? "compacted" : "answered"], nth, tokens)];
}

const refused = (message) => ({ type: "error", error: { type: "invalid_request_error", message } });

function openai({ input, context_management }, nth) {
  const items = input.slice(Math.max(input.findLastIndex(isItem), 0));
  const tokens = size(items);
  const entry = context_management?.find(({ type }) => type === "compaction");
  return [200, fill(SHAPES.openai[entry && tokens >= entry.compact_threshold ? "compacted" : "answered"], nth, tokens)];
}

/** A recorded answer with its number, and with the tokens of this prompt. */
const fill = (shape, nth, tokens) => JSON.parse(JSON.stringify(shape).replaceAll("NTH", String(nth)).replaceAll('"TOKENS"', String(tokens)));

/** Resolves to `{ url, requests }`: of every request its path, headers, body and answer. `refuses` lets it compact nothing. */
export async function compactingProvider(context, { refuses = () => false } = {}) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const body = JSON.parse(text);
    const asked = refuses() ? { ...body, context_management: undefined } : body;
    const path = request.url.replace(/\?.*/, "");
    const [status, answer] = path === "/v1/messages" ? anthropic(asked, request.headers, requests.length) : openai(asked, requests.length);
    requests.push({ path, headers: request.headers, body, answer });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}
