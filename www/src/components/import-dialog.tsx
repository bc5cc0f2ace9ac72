import { useRef, useState } from "preact/hooks";
import { CompactionError, detectFormat, validateHistory, type Format, type Message } from "../engine.js";
import { parseHistory } from "../logic/import.js";
import { describe } from "../run/describe.js";
import { Dialog } from "./dialog.js";
import { count, plural } from "./labels.js";

interface Props {
  onClose(): void;
  onLoad(messages: Message[]): void;
}

type Found = {
  messages: Message[];
  format: string;
  problems: { rule: string; index: number; message: string }[];
};

/** Drop, paste or pick a history: a JSON array, `{ "messages": [...] }`, or JSONL. It is checked before it is played. */
export function ImportDialog({ onClose, onLoad }: Props) {
  const [found, setFound] = useState<Found | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);

  const read = async (text: string) => {
    setFound(undefined);
    setError(undefined);
    if (text.trim() === "") return;
    try {
      const { messages } = parseHistory(text);
      const format = await formatOf(messages);
      const { problems } = await validateHistory(messages, { format });
      setFound({ messages, format, problems });
    } catch (reason) {
      setError(describe(reason));
    }
  };
  const readFile = async (file: File | undefined) => {
    if (file) await read(await file.text());
  };

  return (
    <Dialog title="Play your own history" onClose={onClose}>
      <p>
        OpenAI chat or Anthropic messages, as a JSON array, an object with <code>messages</code>, or JSONL. It
        stays in this browser: it is read here, kept in this browser's IndexedDB, and deleted by “Start over”.
      </p>
      <div
        class={`drop ${over ? "over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void readFile(event.dataTransfer?.files[0]);
        }}
      >
        <textarea
          rows={7}
          autofocus
          spellcheck={false}
          aria-label="History as JSON or JSONL"
          onInput={(event) => void read(event.currentTarget.value)}
          placeholder={'[{ "role": "user", "content": "…" }, …]\n\nPaste here, or drop a file.'}
        />
        <input
          ref={picker}
          type="file"
          class="hidden"
          tabIndex={-1}
          aria-label="History file"
          accept=".json,.jsonl,.ndjson,.txt,application/json"
          onChange={(event) => void readFile(event.currentTarget.files?.[0])}
        />
        <button type="button" class="button" onClick={() => picker.current?.click()}>
          Choose a file
        </button>
      </div>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {found && (
        <div role="status">
          <p>
            <b>{plural(found.messages.length, "message")}</b>, format <code>{found.format}</code>.{" "}
            {found.problems.length === 0 ? "Valid." : `${plural(found.problems.length, "problem")}:`}
          </p>
          {found.problems.length > 0 && (
            <ul class="problems">
              {found.problems.slice(0, 8).map(({ rule, index, message }, i) => (
                <li key={i}>
                  <code>{rule}</code> message {count(index)}: {message}
                </li>
              ))}
              {found.problems.length > 8 && <li>and {count(found.problems.length - 8)} more</li>}
            </ul>
          )}
        </div>
      )}
      <footer>
        <button
          type="button"
          class="button primary"
          disabled={!found}
          onClick={() => found && onLoad(found.messages)}
        >
          Play it
        </button>
      </footer>
    </Dialog>
  );
}

/** Where no format fits, reading the messages as one of them says which message and field is at fault. */
async function formatOf(messages: Message[]): Promise<Format> {
  try {
    return await detectFormat(messages);
  } catch (error) {
    if (CompactionError.isInstance(error) && error.code === "unknown_format") {
      await validateHistory(messages, { format: "openai-chat" });
    }
    throw error;
  }
}
