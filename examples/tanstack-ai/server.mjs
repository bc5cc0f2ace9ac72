/** A provider on this machine: its model reads file after file, and it refuses prompts of more than 8,000 tokens. */

import { createServer } from "node:http";

const SUMMARY = `## Goal
The user wants the files 1 to 40 read, and to know which of them mention an error.
## State
The files so far were read one by one with read_file. Each has 60 lines. File 9 and file 18 have a line that says "error: disk full";
all other lines say "ok". The next file was about to be read.
## Decisions
Files are read in order, one call for each.
## What failed
-
## Next
Answering the user: not done, the files after the last one are missing.`;

export const prompts = [];
let file = 0;

export const server = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  const { model, messages, tools } = JSON.parse(text);
  const tokens = Math.round(JSON.stringify(messages).length / 4);
  if (tokens > 8_000) {
    const message = `This model's maximum context length is 8000 tokens. However, your messages resulted in ${tokens} tokens.`;
    const error = { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" };
    return response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
  }
  if (tools) prompts.push(tokens);
  const isCall = tools && file < 40;
  const call = () => ({ index: 0, id: `call_${++file}`, type: "function", function: { name: "read_file", arguments: `{"file":${file}}` } });
  const content = tools ? "The files 9, 18, 27 and 36 mention an error." : SUMMARY;
  const send = (rest) => {
    const chunk = { id: `chatcmpl-${prompts.length}-${tokens}`, object: "chat.completion.chunk", created: 1_700_000_000, model, ...rest };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  send({ choices: [{ index: 0, delta: { role: "assistant", ...(isCall ? { tool_calls: [call()] } : { content }) }, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: isCall ? "tool_calls" : "stop" }] });
  const sent = Math.round(text.length / 4);
  send({ choices: [], usage: { prompt_tokens: sent, completion_tokens: 20, total_tokens: sent + 20 } });
  response.end("data: [DONE]\n\n");
});
