import { FATE_HINTS } from "context-compactor-ui";
import type { LedgerEntry, Message } from "../engine.js";
import { callsOf, textOf } from "../logic/messages.js";

/** A message in full, with the ledger's word on it. */
export function MessageBody({
  message,
  entry,
  onOffload,
}: {
  message: Message;
  entry: LedgerEntry | undefined;
  onOffload(ref: string): void;
}) {
  const ref = entry?.ref;
  return (
    <div class="body">
      {textOf(message) !== "" && <pre tabIndex={0}>{textOf(message)}</pre>}
      {callsOf(message).map(({ id, name, input }) => (
        <div key={id} class="call">
          <code>{name}</code>
          <pre tabIndex={0}>{pretty(input)}</pre>
        </div>
      ))}
      {entry && (
        <dl class="ledger">
          <dt>Fate</dt>
          <dd>
            {entry.fate}: {FATE_HINTS[entry.fate]}
          </dd>
          {entry.reason && (
            <>
              <dt>Why</dt>
              <dd>{entry.reason}</dd>
            </>
          )}
          {entry.checkpoint && (
            <>
              <dt>Checkpoint</dt>
              <dd>
                <code>{entry.checkpoint}</code>
              </dd>
            </>
          )}
          {ref && (
            <>
              <dt>Offload</dt>
              <dd>
                <button type="button" class="link" onClick={() => onOffload(ref)}>
                  <code>{ref}</code>
                </button>
              </dd>
            </>
          )}
          {entry.sha256 && (
            <>
              <dt>SHA-256</dt>
              <dd>
                <code>{entry.sha256}</code>
              </dd>
            </>
          )}
        </dl>
      )}
    </div>
  );
}

function pretty(input: string): string {
  try {
    const values = JSON.parse(input) as Record<string, unknown>;
    return Object.entries(values)
      .map(
        ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}`,
      )
      .join("\n");
  } catch {
    return input;
  }
}
