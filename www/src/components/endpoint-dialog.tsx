import { useState } from "preact/hooks";
import { DEFAULT_URLS } from "../logic/model-call.js";
import type { Endpoint } from "../run/endpoint.js";
import { Dialog } from "./dialog.js";

interface Props {
  endpoint: Endpoint | undefined;
  onClose(): void;
  onSave(endpoint: Endpoint | undefined): void;
}

const EMPTY: Endpoint = { kind: "openai", url: DEFAULT_URLS.openai, key: "", model: "", summaries: true };

/** The user's own model: for the chat, and for the summaries if wanted. */
export function EndpointDialog({ endpoint, onClose, onSave }: Props) {
  const [draft, setDraft] = useState<Endpoint>(endpoint ?? EMPTY);
  const change = (part: Partial<Endpoint>) => setDraft({ ...draft, ...part });
  const setKind = (kind: Endpoint["kind"]) =>
    change({ kind, url: Object.values(DEFAULT_URLS).includes(draft.url) ? DEFAULT_URLS[kind] : draft.url });
  return (
    <Dialog title="Use a model of your own" onClose={onClose}>
      <p>
        Nothing here needs one: without a model the built-in extractive summarizer works. With one, you can
        chat with the session and let it write the summaries. Your browser then sends the conversation to the
        endpoint below and to nobody else. The key is kept in this tab only, and forgotten when you close it.
      </p>
      <form
        class="fields"
        onSubmit={(event) => {
          event.preventDefault();
          onSave(draft);
        }}
      >
        <fieldset>
          <legend>Wire format</legend>
          {(["openai", "anthropic"] as const).map((kind) => (
            <label key={kind} class="choice">
              <input
                type="radio"
                name="kind"
                autofocus={draft.kind === kind}
                checked={draft.kind === kind}
                onChange={() => setKind(kind)}
              />
              {kind === "openai" ? "OpenAI-compatible" : "Anthropic"}
            </label>
          ))}
        </fieldset>
        <label>
          <span>Endpoint</span>
          <input
            type="url"
            required
            value={draft.url}
            onInput={(event) => change({ url: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>Model</span>
          <input
            required
            value={draft.model}
            onInput={(event) => change({ model: event.currentTarget.value })}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label>
          <span>Key</span>
          <input
            type="password"
            value={draft.key}
            onInput={(event) => change({ key: event.currentTarget.value })}
            autocomplete="off"
            placeholder="none for a local server"
          />
        </label>
        <label class="choice">
          <input
            type="checkbox"
            checked={draft.summaries}
            onChange={(event) => change({ summaries: event.currentTarget.checked })}
          />{" "}
          It also writes the summaries
        </label>
        <footer>
          {endpoint && (
            <button type="button" class="button" onClick={() => onSave(undefined)}>
              Forget it
            </button>
          )}
          <button type="submit" class="button primary">
            Use it
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
