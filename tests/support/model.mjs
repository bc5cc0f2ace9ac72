/** A server that answers like a model's provider: OpenAI's Chat Completions and Anthropic's Messages. */

import { createServer } from "node:http";

/**
 * `answer` makes the text of an answer of `{ system, messages }`; `system` is empty when there is none. Resolves to
 * `{ url, requests, close }`; `requests` holds the path, headers and body of every request. Pages may call it.
 */
export async function serveModel(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "authorization, *" };
    if (request.method === "OPTIONS") return response.writeHead(204, headers).end();
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const reply = (status, value) =>
      response.writeHead(status, { ...headers, "content-type": "application/json" }).end(JSON.stringify(value));
    const body = JSON.parse(text);
    requests.push({ path: request.url, headers: request.headers, body });
    if (request.url === "/v1/chat/completions") reply(200, openai(body, answer));
    else if (request.url === "/v1/messages") reply(200, anthropic(body, answer));
    else reply(404, { error: { message: `there is no ${request.url}` } });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function openai({ model, messages }, answer) {
  const [system, rest] = messages[0]?.role === "system" ? [messages[0].content, messages.slice(1)] : ["", messages];
  const message = { role: "assistant", content: answer({ system, messages: rest }), refusal: null };
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  };
}

function anthropic({ model, system = "", messages }, answer) {
  const text = typeof system === "string" ? system : system.map(({ text }) => text).join("\n");
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: answer({ system: text, messages }) }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 20 },
  };
}
