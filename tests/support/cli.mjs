/** The command line as a process, and the demo's recorded run as every kind of file that it reads. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Ajv from "ajv/dist/2020.js";
import { openSession } from "context-compactor";
import { invoicingRun } from "../../www/transcript/generate.mjs";

export const program = fileURLToPath(new URL("../../pkg/node/cli/main.js", import.meta.url));

const schema = JSON.parse(readFileSync(new URL("../../docs/cli.schema.json", import.meta.url), "utf8"));
const ajv = new Ajv({ allErrors: true });
ajv.addSchema(schema, "cli");

/** Fails unless the schema has what `--json` printed. Objects may gain fields; those of a command are all in the schema. */
export function isDocumented(object) {
  const kind = object.error && object.file === undefined ? "failure" : object.folder === undefined ? object.command : "folder";
  const validate = ajv.getSchema(`cli#/$defs/${kind}`);
  assert.ok(validate(object), JSON.stringify(validate.errors));
  assert.deepEqual(Object.keys(object).filter((name) => !(name in schema.$defs[kind].properties)), []);
}

/** Runs the command line; resolves to its code and what it wrote. */
export function cli(args, { stdin = "", env = {}, cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { cwd, env: { ...process.env, ...env } });
    const written = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (written[name] += text));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code: code ?? signal, ...written }));
    // It may end before it has read everything.
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
  });
}

const run = invoicingRun();
const [system, ...messages] = run;
const inputOf = ({ function: { arguments: text } }) => JSON.parse(text);
const texts = (content) => (typeof content === "string" && content !== "" ? [content] : []);

/** Gemini takes what the model says in a row as one message. */
function joined(all) {
  const out = [];
  for (const message of all) {
    const last = out.at(-1);
    if (last?.role === "model" && message.role === "model") last.parts.push(...message.parts);
    else out.push(message);
  }
  return out;
}

/** Consecutive results are one message. */
function grouped(resultsOf, otherOf) {
  const out = [];
  let results = [];
  const flush = () => {
    if (results.length > 0) out.push(resultsOf(results));
    results = [];
  };
  for (const message of messages) {
    if (message.role === "tool") results.push(message);
    else {
      flush();
      out.push(otherOf(message));
    }
  }
  flush();
  return out;
}

const anthropic = grouped(
  (results) => ({ role: "user", content: results.map(({ tool_call_id, content }) => ({ type: "tool_result", tool_use_id: tool_call_id, content })) }),
  ({ role, content, tool_calls = [] }) => ({
    role,
    content: [
      ...texts(content).map((text) => ({ type: "text", text })),
      ...tool_calls.map((call) => ({ type: "tool_use", id: call.id, name: call.function.name, input: inputOf(call) })),
    ],
  }),
);

const names = new Map(messages.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => [call.id, call.function.name])));

const gemini = grouped(
  (results) => ({ role: "user", parts: results.map(({ tool_call_id, content }) => ({ functionResponse: { id: tool_call_id, name: names.get(tool_call_id), response: { output: content } } })) }),
  ({ role, content, tool_calls = [] }) => ({
    role: role === "assistant" ? "model" : "user",
    parts: [...texts(content).map((text) => ({ text })), ...tool_calls.map((call) => ({ functionCall: { id: call.id, name: call.function.name, args: inputOf(call) } }))],
  }),
);

const aiSdk = [
  system,
  ...grouped(
    (results) => ({ role: "tool", content: results.map(({ tool_call_id, content }) => ({ type: "tool-result", toolCallId: tool_call_id, toolName: names.get(tool_call_id), output: { type: "text", value: content } })) }),
    ({ role, content, tool_calls = [] }) => ({
      role,
      content: [
        ...texts(content).map((text) => ({ type: "text", text })),
        ...tool_calls.map((call) => ({ type: "tool-call", toolCallId: call.id, toolName: call.function.name, input: inputOf(call) })),
      ],
    }),
  ),
];

const responses = messages.flatMap(({ role, content, tool_calls = [], tool_call_id }) =>
  role === "tool"
    ? [{ type: "function_call_output", call_id: tool_call_id, output: content }]
    : [
        ...texts(content).map((text) => ({ type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] })),
        ...tool_calls.map((call) => ({ type: "function_call", call_id: call.id, name: call.function.name, arguments: call.function.arguments })),
      ],
);

const START = Date.UTC(2026, 0, 5, 9);
const timeOf = (nth) => new Date(START + nth * 15_000).toISOString();
const linesOf = (values) => values.map((value) => `${JSON.stringify(value)}\n`).join("");

/** What an agent's own compaction left, which is little. */
const SUMMARY = "This session is being continued from a previous conversation. The user wants invoices rounded per line; the totals agree now, and the migration comes next.";

/** The place of a compaction: before the first word of the user after two thirds. */
const cutOf = (all, isUser) => all.findIndex((message, index) => index > (all.length * 2) / 3 && isUser(message));

function claudeCode() {
  const cut = cutOf(anthropic, ({ role, content }) => role === "user" && content[0].type === "text");
  const lines = anthropic.flatMap((message, index) => [
    ...(index === cut
      ? [
          { type: "system", subtype: "compact_boundary", compactMetadata: { trigger: "auto", preTokens: 64_000 } },
          { type: "user", isCompactSummary: true, message: { role: "user", content: SUMMARY } },
        ]
      : []),
    { type: message.role, message: message.role === "assistant" ? { id: `msg_${index}`, model: "claude-sonnet-4-5", ...message } : message },
  ]);
  return linesOf(lines.map((line, nth) => ({ parentUuid: nth === 0 ? null : `u${nth - 1}`, uuid: `u${nth}`, sessionId: "s", timestamp: timeOf(nth), ...line })));
}

function codex() {
  const cut = cutOf(responses, ({ role }) => role === "user");
  const items = responses.flatMap((payload, index) => [...(index === cut ? [{ type: "compacted", payload: { message: SUMMARY } }] : []), { type: "response_item", payload }]);
  const lines = [{ type: "session_meta", payload: { id: "s", cwd: "/srv/invoicing" } }, { type: "turn_context", payload: { model: "gpt-5" } }, ...items];
  return linesOf(lines.map((line, nth) => ({ timestamp: timeOf(nth), ...line })));
}

async function archive() {
  let [now, ids] = [START, 0];
  const runtime = { now: () => (now += 1_000), id: () => `id-${++ids}` };
  const session = await openSession({ id: "invoicing", store: "memory", contextWindow: 32_000, background: false, logger: () => {}, advanced: { runtime } });
  for (const [index, message] of run.entries()) {
    if (message.role === "assistant" && index > 0) await session.prepare();
    await session.append(message);
  }
  const text = await new Response(session.archive.jsonl()).text();
  await session.close({ delete: true });
  return text;
}

const json = (value) => `${JSON.stringify(value)}\n`;

/** The text of a file, by what it is. */
export const files = {
  archive: await archive(),
  "claude-code": claudeCode(),
  codex: codex(),
  "openai-lines": linesOf(run),
  "openai-body": json({ model: "gpt-4o", messages: run, tools: [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }] }),
  "responses-body": json({ model: "gpt-5", instructions: system.content, input: responses }),
  "anthropic-body": json({ model: "claude-sonnet-4-5", system: system.content, max_tokens: 1_000, messages: anthropic }),
  gemini: json({ systemInstruction: { parts: [{ text: system.content }] }, contents: joined(gemini) }),
  "ai-sdk": json(aiSdk),
};
