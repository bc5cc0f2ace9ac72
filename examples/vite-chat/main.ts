/** A chat whose conversation is kept in IndexedDB and always fits the model's window. */

import { openSession } from "context-compactor";
import { chatCommand } from "context-compactor/commands";

interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

const query = new URLSearchParams(location.search);
const endpoint = query.get("endpoint") ?? "http://localhost:11434/v1/chat/completions";
const model = query.get("model") ?? "llama3.2";

async function complete(messages: ChatMessage[], maxTokens = 1_000, signal?: AbortSignal): Promise<string> {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages, max_tokens: maxTokens }),
    signal: signal ?? null,
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const { choices } = (await response.json()) as { choices: [{ message: ChatMessage }] };
  return choices[0].message.content;
}

// Not awaited here: what is entered before the session is open waits for it.
const opening = openSession<ChatMessage>({
  id: "chat",
  contextWindow: 8_000,
  maxOutputTokens: 1_000,
  summarize: ({ system, messages, maxTokens }, { signal }) =>
    complete([{ role: "system", content: system }, ...messages], maxTokens, signal),
});

const list = document.querySelector("#messages")!;
const form = document.querySelector("form")!;

function show(role: string, content: string): void {
  const item = document.createElement("li");
  item.textContent = `${role}: ${content}`;
  list.append(item);
}

async function showContext(): Promise<void> {
  const session = await opening;
  const { messages } = await session.prepare();
  list.replaceChildren();
  for (const { role, content } of messages) show(role, content);
}

async function send(text: string): Promise<void> {
  const session = await opening;
  show("user", text);
  await session.append({ role: "user", content: text }); // on disk when it resolves
  const { messages } = await session.prepare(); // compacted if it has to be
  const answer = await complete(messages);
  await session.append({ role: "assistant", content: answer });
  show("assistant", answer);
}

const shown = showContext();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = new FormData(form).get("text")!.toString().trim();
  form.reset();
  try {
    await shown;
    const answer = await chatCommand(await opening, text); // /compact, /context or /help
    if (text.startsWith("/compact")) await showContext();
    if (answer) show("chat", answer.text);
    else if (text !== "") await send(text);
  } catch (error) {
    show("error", String(error));
  }
});
await shown;
