import { useEffect, useRef, useState } from "preact/hooks";
import { COMMANDS } from "../engine.js";
import type { RunState } from "../run/types.js";
import { Icon } from "./icon.js";

interface Props {
  state: RunState;
  hasModel: boolean;
  onSend(text: string): void;
  onModel(): void;
}

/** `/compact`, `/context` and `/help` on the session that is playing; plain text goes to the user's model. */
export function Chat({ state, hasModel, onSend, onModel }: Props) {
  const [text, setText] = useState("");
  const log = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (log.current) log.current.scrollTop = log.current.scrollHeight;
  }, [state.chat.length]);

  const submit = () => {
    if (text.trim() === "") return;
    onSend(text);
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };

  return (
    <div class="chat">
      <div class="log" ref={log} role="log" aria-live="polite" tabIndex={0} aria-label="Chat">
        {state.chat.length === 0 && (
          <div class="empty">
            <p>Talk to the session that is playing. It works without a model:</p>
            <ul>
              {COMMANDS.map(({ name, argument, help }) => (
                <li key={name}>
                  <button type="button" class="link" onClick={() => onSend(name)}>
                    <code>
                      {name}
                      {argument && ` ${argument}`}
                    </code>
                  </button>{" "}
                  {help}
                </li>
              ))}
            </ul>
            {!hasModel && (
              <p>
                Plain text needs{" "}
                <button type="button" class="link" onClick={onModel}>
                  a model of yours
                </button>
                .
              </p>
            )}
          </div>
        )}
        {state.chat.map(({ from, tone, text: said }, i) => (
          <div key={i} class={`said ${from} ${tone ?? ""}`}>
            {from === "note" || from === "command" ? <pre>{said}</pre> : <p>{said}</p>}
          </div>
        ))}
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <textarea
          rows={1}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          aria-label="Message or command"
          placeholder={hasModel ? "Ask the model, or /compact, /context" : "/compact keep the SQL"}
        />
        <button type="submit" class="button icon-only" aria-label="Send" disabled={text.trim() === ""}>
          <Icon name="send" />
        </button>
      </form>
    </div>
  );
}
