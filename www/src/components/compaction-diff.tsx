import { useMemo, useState } from "preact/hooks";
import type { Message } from "../engine.js";
import { diffContexts, diffText } from "../logic/context-diff.js";
import { answersOf, callsOf, fullTextOf, kindOf, previewOf } from "../logic/messages.js";
import type { Compaction, Offload } from "../run/types.js";
import { plural } from "./labels.js";

/** What the model saw before and after, as a diff of messages; each opens to its lines. */
export function CompactionDiff({
  compaction,
  offloads,
  onOffload,
}: {
  compaction: Compaction;
  offloads: readonly Offload[];
  onOffload(ref: string): void;
}) {
  const hunks = useMemo(() => diffContexts(compaction.before, compaction.after), [compaction]);
  return (
    <div class="diff" role="group" aria-label="Context before and after">
      {hunks.map((hunk, i) => {
        if (hunk.kind === "same")
          return (
            <p key={i} class="same">
              {plural(hunk.messages.length, "message")} unchanged
            </p>
          );
        if (hunk.kind === "changed")
          return <Changed key={i} before={hunk.before} after={hunk.after} offloads={offloads} onOffload={onOffload} />;
        if (hunk.kind === "removed")
          return <Removed key={i} messages={hunk.messages} replaced={hunks[i - 1]?.kind === "added"} />;
        return <Whole key={i} kind="added" message={hunk.message} />;
      })}
    </div>
  );
}

function Removed({ messages, replaced }: { messages: Message[]; replaced: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <div class="removed">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          <b aria-label="removed">−</b>
          <span class="run">
            {plural(messages.length, "message")} {replaced ? "told by it" : "left out"} ·{" "}
            {open ? "hide" : "show"}
          </span>
        </button>
      </div>
      {open && messages.map((message, i) => <Whole key={i} kind="removed" message={message} />)}
    </>
  );
}

function Whole({ kind, message }: { kind: "removed" | "added"; message: Message }) {
  const [open, setOpen] = useState(kind === "added");
  return (
    <div class={kind}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <b aria-label={kind}>{kind === "added" ? "+" : "−"}</b>
        <span class="role">{role(message)}</span>
        <span class="line">{previewOf(message)}</span>
      </button>
      {open && <pre tabIndex={0}>{fullTextOf(message)}</pre>}
    </div>
  );
}

function Changed({
  before,
  after,
  offloads,
  onOffload,
}: {
  before: Message;
  after: Message;
  offloads: readonly Offload[];
  onOffload(ref: string): void;
}) {
  const [open, setOpen] = useState(false);
  const answered = answersOf(before);
  return (
    <div class="changed">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <b aria-label="changed">±</b>
        <span class="role">{role(before)}</span>
        <span class="line">{previewOf(before)}</span>
      </button>
      {offloads.filter(({ callId }) => answered.includes(callId)).map(({ ref }) => (
        <p key={ref} class="now">
          The result is stored as {ref}{" "}
          <button type="button" class="link" onClick={() => onOffload(ref)}>
            read it
          </button>
        </p>
      ))}
      {open && (
        <pre tabIndex={0}>
          {diffText(before, after).map(({ kind, text }, i) => (
            <span key={i} class={kind}>
              {text}
              {"\n"}
            </span>
          ))}
        </pre>
      )}
    </div>
  );
}

function role(message: Message): string {
  const kind = kindOf(message);
  if (kind === "tool") return "result";
  return callsOf(message).length > 0 ? "calls" : kind;
}
