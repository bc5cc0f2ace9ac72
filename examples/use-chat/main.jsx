/** The page: a chat whose history stays whole, with a divider where the model's view of it became shorter. */

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { CompactionDivider } from "context-compactor-ui/react";
import "context-compactor-ui/styles.css";
import { createRoot } from "react-dom/client";

const id = new URLSearchParams(location.search).get("chat") ?? "chat-1";
const transport = new DefaultChatTransport({
  api: "/api/chat",
  // The server has the messages before it.
  prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, message: messages.at(-1) } }),
});

function Chat({ saved }) {
  const { messages, sendMessage, status, error } = useChat({ id, messages: saved, transport });
  const submit = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("text").trim();
    event.target.reset();
    if (text) void sendMessage({ text });
  };
  return (
    <>
      <div id="messages" aria-live="polite">
        {messages.map(({ id, role, parts }) => parts.map((part, at) => <Part key={`${id} ${at}`} role={role} part={part} />))}
        {error && <p role="alert">{error.message}</p>}
      </div>
      <form onSubmit={submit}>
        <label>
          Message <input name="text" disabled={status === "submitted" || status === "streaming"} autoComplete="off" />
        </label>
      </form>
    </>
  );
}

function Part({ role, part: { type, text, data, input } }) {
  if (type === "text") return <p>{`${role}: ${text}`}</p>;
  if (type === "data-compaction") return <CompactionDivider compaction={data} />; // all above it is still there, for you
  return type.startsWith("tool-") && <p className="tool">{`${type.slice(5)} ${JSON.stringify(input ?? {})}`}</p>;
}

const saved = await (await fetch(`/api/chat?id=${encodeURIComponent(id)}`)).json();
createRoot(document.querySelector("#chat")).render(<Chat saved={saved} />);
