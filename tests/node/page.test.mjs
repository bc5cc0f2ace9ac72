/** docs/page.md is what the session makes of the demo's run, and README.md quotes it. `BLESS=1` writes it anew. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { openSession } from "context-compactor";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const run = JSON.parse(read("www/public/transcripts/invoicing-run.json"));

/** The run as an app plays it, up to the first summary: what was there, and what is sent. */
async function play() {
  // The same references each time.
  let nth = 0;
  const runtime = { now: () => Date.UTC(2026, 0, 1), id: () => `id-${nth++}` };
  const options = { contextWindow: 32_000, background: false, advanced: { runtime }, logger: () => {} };
  const session = await openSession({ store: "memory", ...options });
  const tools = session.recall.tools();
  try {
    for (const [at, message] of run.entries()) {
      await session.append(message);
      if (message.role === "assistant" || run[at + 1]?.role !== "assistant") continue;
      const { usedTokens } = session.context.usage();
      const { messages, result, usage } = await session.prepare({ tools });
      if (result) return { at, messages, before: usedTokens, after: usage.usedTokens };
    }
  } finally {
    await session.close({ delete: true });
  }
  return assert.fail("it never acted");
}

const number = (count) => count.toLocaleString("en-US");
const first = (text, length) => (text.length > length ? `${text.slice(0, length).trimEnd()} …` : text).split("\n")[0];

/** A message in a line. */
function line({ role, content, tool_calls: calls = [] }, at) {
  const called = calls.map(({ function: { name, arguments: given } }) => `→ ${name} ${first(given, 60)}`);
  const size = (content ?? "").length > 120 ? ` (${number(content.length)} characters)` : "";
  return [`${String(at).padStart(3)} ${role.padEnd(9)}`, content && `${first(content, 90)}${size}`, ...called].filter(Boolean).join(" ");
}

async function page() {
  const { at, messages, before: full, after } = await play();
  const summary = messages.findIndex(({ content }) => content?.startsWith("[Compressed History]"));
  const before = run.slice(0, at + 1).map(line);
  return `# A context before and after

The recorded run of the demo in a window of 32,000 tokens, with the built-in summarizer and the recall tools. When the next call
was due after message ${at}, the prompt had ${number(full)} tokens. It was compacted to ${number(after)}: the system prompt, the page below, and the
newest ${messages.length - summary - 1} messages as they were. \`tests/node/page.test.mjs\` plays the run and compares.

## Before

\`\`\`\`text
${before.slice(0, 12).join("\n")}
    …
${before.slice(-6).join("\n")}
\`\`\`\`

## After

\`\`\`\`text
${messages.slice(0, summary).map(line).join("\n")}
${messages[summary].content}
\`\`\`\`

Behind it stand the newest messages, from this one on:

\`\`\`\`text
${line(messages[summary + 1], run.findIndex((message) => message === messages[summary + 1]))}
\`\`\`\`
`;
}

test("W12: docs/page.md is what the session makes of the demo's run", async () => {
  const made = await page();
  if (process.env.BLESS === "1") writeFileSync(new URL("docs/page.md", root), made);
  assert.equal(made, read("docs/page.md"), "run with BLESS=1 and read the change");
});

test("README.md quotes the page", () => {
  const lines = new Set(read("docs/page.md").split("\n"));
  const [, quoted] = /## What the model sees[\s\S]*?```text\n([\s\S]*?)\n```/.exec(read("README.md"));
  const own = quoted.split("\n").filter((text) => !/^\s*…$/.test(text));
  assert.ok(own.length > 5);
  for (const text of own) {
    const isThere = text.endsWith(" …") ? Array.from(lines).some((all) => all.startsWith(text.slice(0, -2))) : lines.has(text);
    assert.ok(isThere, `docs/page.md does not have: ${text}`);
  }
});
