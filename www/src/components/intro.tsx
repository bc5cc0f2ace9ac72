import { useState } from "preact/hooks";
import { overflowOf, wholeOf } from "../logic/forecast.js";
import type { RunState } from "../run/types.js";
import { Drop } from "./drop.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

const INSTALL = "npm install context-compactor";

interface Props {
  state: RunState;
  isOver: boolean;
  onFile(file: File): void;
  onPaste(): void;
}

/** What happens on this page, and the first thing to do. */
export function Intro({ state, isOver, onFile, onPaste }: Props) {
  return (
    <section class="intro" aria-labelledby="title">
      <h1 id="title">A long agent run in a small context window, and nothing is lost</h1>
      <p class={`lead ${state.sourceWeights.length > 0 ? "" : "unknown"}`}>{leadOf(state)}</p>
      <Drop isOver={isOver} onFile={onFile} onPaste={onPaste} />
      <Install />
    </section>
  );
}

/** The page in one sentence. */
function leadOf(state: RunState) {
  const { sourceName, source, contextWindow } = state;
  const whole = wholeOf(state);
  const fits = overflowOf(whole, contextWindow) === undefined;
  return (
    <>
      {sourceName === "own" ? "Your history" : "A recorded run"} of <b>{count(source.length)}</b> messages comes to{" "}
      <b>{count(whole.at(-1) ?? 0)}</b> tokens{fits ? " and fits into" : ", but the model has room for"} <b>{count(contextWindow)}</b>:{" "}
      {fits ? "only when room gets short do" : "before that is full,"} old parts leave the prompt, stay in this browser, and come back word for word when they
      are asked for.
    </>
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
