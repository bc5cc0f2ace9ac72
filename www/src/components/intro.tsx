import { useState } from "preact/hooks";
import { WINDOWS } from "../run/initial.js";
import type { RunState, SourceName } from "../run/types.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

const INSTALL = "npm install context-compactor";

interface Props {
  state: RunState;
  onSource(name: SourceName): void;
  onWindow(tokens: number): void;
}

export function Intro({ state, onSource, onWindow }: Props) {
  return (
    <section class="intro" aria-labelledby="title">
      <div>
        <h1 id="title">A long agent run in a small context window</h1>
        <p>
          {state.sourceName === "own" ? "Your history" : "A recorded run"} of {count(state.source.length)}{" "}
          messages plays into a real session with room for {count(state.contextWindow)} tokens. Watch what
          stays, what moves out of the context, and where every message went.
        </p>
      </div>
      <div class="setup">
        <label>
          <span>Run</span>
          <select
            value={state.sourceName}
            onChange={(event) => onSource(event.currentTarget.value as SourceName)}
          >
            <option value="invoicing-run">Invoice rounding · OpenAI chat format</option>
            <option value="queue-triage">Queue triage · Anthropic format</option>
            {state.sourceName === "own" && <option value="own">Your history</option>}
          </select>
        </label>
        <label>
          <span>Window</span>
          <select
            value={state.contextWindow}
            onChange={(event) => onWindow(Number(event.currentTarget.value))}
          >
            {WINDOWS.map((tokens) => (
              <option key={tokens} value={tokens}>
                {count(tokens)} tokens
              </option>
            ))}
          </select>
        </label>
        <Install />
      </div>
    </section>
  );
}

function Install() {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(INSTALL).catch(() => undefined);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" class="install" onClick={() => void copy()} aria-label={`Copy: ${INSTALL}`}>
      <code>{INSTALL}</code>
      {copied ? <span role="status">Copied</span> : <Icon name="copy" />}
    </button>
  );
}
