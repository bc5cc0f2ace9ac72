import { useEffect, useState } from "preact/hooks";
import { argumentsLine, callsOf } from "../logic/messages.js";
import type { RunController } from "../run/controller.js";
import type { Offload, RunState } from "../run/types.js";
import { describe } from "../run/describe.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

interface Props {
  run: RunController;
  state: RunState;
  selected: string | undefined;
  onSelect(ref: string | undefined): void;
}

/** Results that left the context. Their text is read back from the session, byte for byte. */
export function Offloads({ run, state, selected, onSelect }: Props) {
  if (state.offloads.length === 0) {
    return (
      <p class="empty">
        Nothing offloaded yet. Long tool results move here first; a reference stays in the context, and the
        text stays on this device.
      </p>
    );
  }
  return (
    <ul class="offloads">
      {[...state.offloads].reverse().map((offload) => (
        <li
          key={offload.ref}
          id={offload.ref}
          class={`${offload.retired ? "retired" : ""} ${offload.ref === selected ? "open" : ""}`}
        >
          <button
            type="button"
            class="head"
            aria-expanded={offload.ref === selected}
            onClick={() => onSelect(offload.ref === selected ? undefined : offload.ref)}
          >
            <span class="kind offload">
              <Icon name="offloaded" />
            </span>
            <span class="title">
              <b>{title(state, offload)}</b>
              <span>
                <code>{offload.ref}</code>
              </span>
            </span>
            <span class="change number">
              <b>{count(state.weights[offload.index] ?? 0)}</b>
              <span>{offload.retired ? "retired" : "in use"}</span>
            </span>
            <Icon name="chevron" />
          </button>
          {offload.ref === selected && <Content key={offload.ref} run={run} offload={offload} />}
        </li>
      ))}
    </ul>
  );
}

function Content({ run, offload }: { run: RunController; offload: Offload }) {
  const [text, setText] = useState<string | undefined>();
  const [error, setError] = useState<string | undefined>();
  useEffect(() => {
    let gone = false;
    run.readOffload(offload.ref).then(
      (value) => gone || setText(value),
      (reason: unknown) => gone || setError(describe(reason)),
    );
    return () => {
      gone = true;
    };
  }, [run, offload.ref]);
  return (
    <div class="body">
      <p class="facts">
        Result of message {count(offload.index + 1)}, moved out at message {count(offload.x)}
        {offload.retired ? ". Nothing in the context points here any more; the text is still stored." : ""}
        {text === undefined ? "" : ` · ${count([...text].length)} characters`}
      </p>
      {error ? (
        <p class="error" role="alert">
          {error}
        </p>
      ) : (
        <pre tabIndex={0} aria-busy={text === undefined}>
          {text ?? "Reading…"}
        </pre>
      )}
      {offload.sha256 && (
        <p class="facts">
          SHA-256 <code>{offload.sha256}</code>
        </p>
      )}
    </div>
  );
}

/** The call that the result answers. */
function title({ log }: RunState, { index, callId }: Offload): string {
  const call = log
    .slice(0, index)
    .flatMap(callsOf)
    .find(({ id }) => id === callId);
  return call ? `${call.name} ${argumentsLine(call.input)}` : `message ${index + 1}`;
}
