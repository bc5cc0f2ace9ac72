/**
 * A provider that is as strict as the real ones: aimock answers in the shapes of OpenAI, Anthropic and Gemini, but takes
 * any messages, and sees them only after it has made them all alike. So a gate stands before it that reads the bytes
 * of each request and refuses what the provider would refuse.
 */

import { LLMock } from "@copilotkit/aimock";
import { once } from "node:events";
import { createServer } from "node:http";
import { validateHistory } from "context-compactor/history";
import { shapeProblems } from "../formats/schemas/index.mjs";

/** What every request that is not refused is answered. */
export const ANSWER = "Done.";

const asOpenAi = (message) => ({
  error: { message, type: "invalid_request_error", param: null, code: null },
});

/** The endpoints: which messages a request has, and how the provider refuses it. */
const APIS = [
  {
    path: /^\/v1\/chat\/completions$/,
    format: "openai-chat",
    messages: ({ messages }) => messages,
    refusal: asOpenAi,
  },
  {
    path: /^\/v1\/responses$/,
    format: "openai-responses",
    messages: ({ input }) => (typeof input === "string" ? [{ role: "user", content: input }] : input),
    refusal: asOpenAi,
  },
  {
    path: /^\/v1\/messages(\?beta=true)?$/,
    format: "anthropic",
    messages: ({ messages }) => messages,
    refusal: (message) => ({ type: "error", error: { type: "invalid_request_error", message } }),
  },
  {
    path: /^\/v1(beta)?\/models\/[^:]+:generateContent$/,
    format: "gemini",
    messages: ({ contents }) => contents,
    refusal: (message) => ({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }),
  },
];

/**
 * Resolves to `{ url, requests, close }`. `requests` holds `{ format, messages, problems }` of every request; one with
 * problems was answered with status 400 and all of them in its message.
 */
export async function serveProvider() {
  const mock = new LLMock({ port: 0, logLevel: "silent" });
  mock.on({}, { content: ANSWER });
  await mock.start();
  const requests = [];
  const gate = createServer((request, response) => {
    pass({ upstream: mock.url, requests }, request, response).catch((error) =>
      response.writeHead(500).end(String(error.stack)),
    );
  }).listen(0, "127.0.0.1");
  await once(gate, "listening");
  return {
    url: `http://127.0.0.1:${gate.address().port}`,
    requests,
    async close() {
      gate.closeAllConnections();
      gate.close();
      await mock.stop();
    },
  };
}

async function pass({ upstream, requests }, request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const reply = (status, text) =>
    response.writeHead(status, { "content-type": "application/json" }).end(text);

  const api = APIS.find(({ path }) => path.test(request.url));
  if (!api) return reply(404, JSON.stringify(asOpenAi(`there is no ${request.url}`)));
  const messages = api.messages(JSON.parse(bytes.toString()));
  const problems = await refused(api.format, messages);
  requests.push({ format: api.format, messages, problems });
  if (problems.length > 0) return reply(400, JSON.stringify(api.refusal(problems.join("\n"))));

  const headers = { "content-type": "application/json", authorization: "Bearer key" };
  // Of Gemini's two versions, which are the same here, aimock knows one.
  const url = upstream + request.url.replace("/v1/models/", "/v1beta/models/");
  const answer = await fetch(url, { method: "POST", headers, body: bytes });
  reply(answer.status, await answer.text());
}

/** Why the provider would refuse these messages. */
async function refused(format, messages) {
  const shape = await shapeProblems(format, messages);
  try {
    return [
      ...shape,
      ...(await validateHistory(messages, { format })).problems.map(({ rule, index }) => `${rule} at ${index}`),
    ];
  } catch (error) {
    return [...shape, error.message];
  }
}
