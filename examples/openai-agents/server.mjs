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
  const { model, instructions, input, tools } = JSON.parse(text);
  const reply = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const tokens = Math.round(JSON.stringify([instructions, input]).length / 4);
  if (tokens > 8_000) {
    const message = `This model's maximum context length is 8000 tokens. However, your messages resulted in ${tokens} tokens.`;
    return reply(400, { error: { message, type: "invalid_request_error", param: "input", code: "context_length_exceeded" } });
  }
  const isAgent = tools?.length > 0;
  if (isAgent) prompts.push(tokens);
  const id = `${prompts.length}_${tokens}`;
  const call = () => ({ id: `fc_${++file}`, type: "function_call", call_id: `call_${file}`, name: "read_file", arguments: `{"file":${file}}`, status: "completed" });
  const say = (text) => ({ id: `msg_${id}`, type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] });
  const answer = isAgent ? "The files 9, 18, 27 and 36 mention an error." : SUMMARY;
  const counted = Math.round(text.length / 4);
  reply(200, {
    ...{ id: `resp_${id}`, object: "response", created_at: 1_700_000_000, status: "completed", model, error: null, incomplete_details: null },
    output: [isAgent && file < 40 ? call() : say(answer)],
    usage: { input_tokens: counted, output_tokens: 20, total_tokens: counted + 20 },
  });
});
