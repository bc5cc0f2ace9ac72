import { argumentsLine, callsOf } from "../logic/messages.js";
import type { RunController } from "../run/controller.js";
import type { Offload, RunState } from "../run/types.js";
import { Content, Entry } from "./entry.js";
import { count } from "./labels.js";

interface Props {
  run: RunController;
  state: RunState;
  selected: string | undefined;
  onSelect(ref: string | undefined): void;
  onAsk(): void;
}

/** Results that stand behind references. */
export function Recall({ run, state, selected, onSelect, onAsk }: Props) {
  if (state.offloads.length === 0) return <p class="empty">Nothing is behind a reference yet.</p>;
  return (
    <>
      <p class="facts">
        Texts that a reference replaced. A search finds these and all that was said:{" "}
        <button type="button" class="link" onClick={onAsk}>
          ask for something that left
        </button>
        .
      </p>
      <ul class="offloads" aria-label="Results behind references">
        {[...state.offloads].reverse().map((offload) => (
          <Entry
            key={offload.ref}
            id={offload.ref}
            isRetired={offload.retired}
            title={title(state, offload)}
            line={<code>{offload.ref}</code>}
            size={count(state.weights[offload.index] ?? 0)}
            place={offload.retired ? "retired" : "in use"}
            open={offload.ref === selected}
            onToggle={(open) => onSelect(open ? offload.ref : undefined)}
          >
            <Content run={run} refName={offload.ref} sha256={offload.sha256}>
              Result of message {count(offload.index + 1)}, moved out at message {count(offload.x)}
              {offload.retired ? ". Nothing in the context points here any more; the text is still stored." : ""}
            </Content>
          </Entry>
        ))}
      </ul>
    </>
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
