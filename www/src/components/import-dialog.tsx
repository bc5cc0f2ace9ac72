import { useEffect, useState } from "preact/hooks";
import { describe } from "../run/describe.js";
import { readHistory, type History } from "../run/sources.js";
import { Dialog } from "./dialog.js";
import { count, plural } from "./labels.js";

interface Props {
  /** What was dropped. */
  text: string;
  onClose(): void;
  onLoad(history: History): void;
}

/** Paste a history, or see what is wrong with one that was dropped. It is checked before it is played. */
export function ImportDialog({ text, onClose, onLoad }: Props) {
  const [found, setFound] = useState<History | undefined>();
  const [error, setError] = useState<string | undefined>();

  const read = async (given: string) => {
    setFound(undefined);
    setError(undefined);
    if (given.trim() !== "") await readHistory(given).then(setFound, (reason: unknown) => setError(describe(reason)));
  };
  // Effects run late: by then somebody may have pasted.
  useEffect(() => {
    if (text !== "") void read(text);
  }, [text]);

  return (
    <Dialog title="Play your own history" onClose={onClose}>
      <p>
        A transcript of Claude Code or Codex, or messages of OpenAI, Anthropic and others, as a JSON array, an object with{" "}
        <code>messages</code>, or JSON lines. It stays in this browser: it is read here, kept in this browser's IndexedDB, and
        deleted by “Start over”.
      </p>
      <textarea
        class="paste"
        rows={7}
        autofocus
        spellcheck={false}
        aria-label="History as JSON or JSON lines"
        onInput={(event) => void read(event.currentTarget.value)}
        placeholder={'[{ "role": "user", "content": "…" }, …]'}
      />
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
        <button type="button" class="button primary" disabled={!found} onClick={() => found && onLoad(found)}>
          Play it
        </button>
      </footer>
    </Dialog>
  );
}
