/** Compacts the history that is posted to it. */

import { compact, CompactionError, type Message, type Summarize } from "context-compactor";

interface Env {
  ENDPOINT: string;
  MODEL: string;
  OPENAI_API_KEY: string;
}

/** The summary, written by a model. What is thrown here is tried again, and is in `result.error` in the end. */
function summarizeWith(env: Env): Summarize {
  return async ({ system, messages, maxTokens }, { signal }) => {
    const response = await fetch(env.ENDPOINT, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${env.OPENAI_API_KEY}` },
      body: JSON.stringify({
        model: env.MODEL,
        messages: [{ role: "system", content: system }, ...messages],
        max_completion_tokens: maxTokens,
      }),
      signal,
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
    return choices[0].message.content;
  };
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      const { messages } = (await request.json()) as { messages: Message[] };
      const result = await compact(messages, { summarize: summarizeWith(env), signal: request.signal });
      const { success, previousTokens, currentTokens, reason, error } = result;
      const told = { success, previousTokens, currentTokens, reason: error?.message ?? reason };
      return Response.json({ ...told, messages: result.messages });
    } catch (error) {
      if (!CompactionError.isInstance(error)) throw error;
      // Says which message and field is wrong.
      return Response.json({ code: error.code, message: error.message }, { status: 400 });
    }
  },
};
