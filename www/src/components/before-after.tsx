import { useMemo, useState } from "preact/hooks";
import { diffContexts } from "../logic/context-diff.js";
import { fullTextOf, kindOf, previewOf } from "../logic/messages.js";
import type { Message } from "../engine.js";
import type { RunController } from "../run/controller.js";
import { describe } from "../run/describe.js";
import type { Proof } from "../run/proof.js";
import type { Compaction, RunState } from "../run/types.js";
import { Ask } from "./ask.js";
import { count, percent, plural } from "./labels.js";

interface Props {
  run: RunController;
  state: RunState;
  /** The last one up to the step that is looked at. */
  compaction: Compaction | undefined;
  onOpen(number: number): void;
  onReport(): void;
}

/** What the model would have been sent, beside what it is sent, and that nothing of it is lost. */
export function BeforeAfter({ run, state, compaction, onOpen, onReport }: Props) {
  const { contextWindow: max, samples } = state;
  const before = compaction?.previousTokens ?? samples.at(-1)?.used ?? 0;
  return (
    <section class="card before-after" aria-labelledby="before-after-title">
      <header>
        <h2 id="before-after-title">What the model sees</h2>
        {compaction ? (
          <p>
            At message {count(compaction.x)} ({compaction.why}) ·{" "}
            <button type="button" class="link" onClick={() => onOpen(compaction.number)}>
              every line
            </button>
          </p>
        ) : (
          <p>No compaction yet</p>
        )}
      </header>
      <div class="sizes">
        <Size title="Before" tokens={before} max={max} />
        <Size title="After" tokens={compaction?.tokensAfter} max={max} before={before} />
      </div>
      {compaction ? <Rows compaction={compaction} /> : <p class="waiting">{waitingFor(state)}</p>}
      <Lost run={run} state={state} compaction={compaction} onReport={onReport} key={state.id} />
      <Ask run={run} state={state} compaction={compaction} key={`ask ${state.id}`} />
    </section>
  );
}

interface SizeProps {
  title: string;
  tokens: number | undefined;
  max: number;
  before?: number;
}

function Size({ title, tokens, max, before }: SizeProps) {
  const freed = before && tokens !== undefined ? ` −${percent(1 - tokens / before)}` : "";
  return (
    <div class="size">
      <p>
        {title} <b class="number">{tokens === undefined ? "…" : count(tokens)}</b> tokens<span class="number">{freed}</span>
      </p>
      <div class="bar thin" aria-hidden="true">
        <i style={{ width: `${Math.min(100, ((tokens ?? 0) / max) * 100)}%` }} />
      </div>
    </div>
  );
}

/** As many as are looked at before “every line” is better. */
const ROWS = 60;

function Rows({ compaction }: { compaction: Compaction }) {
  const rows = useMemo(() => rowsOf(compaction), [compaction]);
  return (
    <ol class="rows" tabIndex={0} aria-label="Messages before and after">
      {rows.slice(0, ROWS).map(({ was, is, same }, i) =>
        same > 0 ? (
          <li key={i} class="same">
            {plural(same, "message")} unchanged
          </li>
        ) : (
          <li key={i} class="pair">
            <Side title="Before" messages={was} />
            <Side title="After" messages={is} />
          </li>
        ),
      )}
      {rows.length > ROWS && <li class="same">and {count(rows.length - ROWS)} more places</li>}
    </ol>
  );
}

interface Row {
  was: Message[];
  is: Message[];
  same: number;
}

/** A summary stands beside the messages that it replaced. */
function rowsOf({ before, after }: Compaction): Row[] {
  const rows: Row[] = [];
  for (const hunk of diffContexts(before, after)) {
    const last = rows.at(-1);
    if (hunk.kind === "same") rows.push({ was: [], is: [], same: hunk.messages.length });
    else if (hunk.kind === "changed") rows.push({ was: [hunk.before], is: [hunk.after], same: 0 });
    else if (hunk.kind === "added") rows.push({ was: [], is: [hunk.message], same: 0 });
    else if (last && last.same === 0 && last.was.length === 0) last.was = hunk.messages;
    else rows.push({ was: hunk.messages, is: [], same: 0 });
  }
  return rows;
}

/** Characters of a line, about. */
const LINE = 220;

/** One message with the beginning of its text, the longer the more it says; of several, their first lines. */
function Side({ title, messages }: { title: string; messages: readonly Message[] }) {
  const [only] = messages;
  if (!only) return <div class="side none">{title === "After" ? "left out" : ""}</div>;
  const text = fullTextOf(only);
  const [least, most] = title === "Before" ? [2, 5] : [4, 12];
  const lines = Math.min(most, Math.max(least, Math.round(text.length / LINE)));
  return (
    <div class={`side ${title.toLowerCase()}`}>
      <span class="hidden">{title}: </span>
      {messages.length === 1 ? (
        <p style={{ "-webkit-line-clamp": lines }}>
          <b>{kindOf(only) === "tool" ? "result" : kindOf(only)}</b> {text.slice(0, 800)}
        </p>
      ) : (
        <>
          <p>
            <b>{plural(messages.length, "message")}</b>
          </p>
          {messages.slice(0, 4).map((message, i) => (
            <p key={i} class="line">
              {previewOf(message)}
            </p>
          ))}
        </>
      )}
    </div>
  );
}

function Lost({ run, state, compaction, onReport }: Pick<Props, "run" | "state" | "compaction" | "onReport">) {
  const [proof, setProof] = useState<Proof | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [isChecking, setChecking] = useState(false);
  const check = () => {
    setError(undefined);
    setChecking(true);
    run
      .prove()
      .then(setProof, (reason: unknown) => setError(describe(reason)))
      .finally(() => setChecking(false));
  };
  const isDamaged = proof !== undefined && !isWhole(proof);
  const left = compaction?.ledger.filter(({ fate }) => fate !== "verbatim").length ?? 0;
  return (
    <div class="lost">
      <p>
        <b>{isDamaged ? "Lost: more than nothing." : "Lost: nothing."}</b> {left > 0 ? `${plural(left, "message")} left or became shorter; all are kept here.` : "What leaves the prompt is kept in this browser."}
      </p>
      <p class="actions">
        <button type="button" class="button" disabled={isChecking || state.log.length === 0} onClick={check}>
          Check it
        </button>
        <button type="button" class="button" disabled={state.log.length === 0} onClick={onReport}>
          Share a report
        </button>
      </p>
      <p class={`proof ${error || isDamaged ? "error" : ""}`} role="status">
        {error ?? (isChecking ? "Reading everything back…" : proof && proofText(proof))}
      </p>
    </div>
  );
}

const isWhole = ({ messages, same, problems }: Proof) => same === messages && problems === 0;

function proofText({ messages, same, problems, durationMs }: Proof): string {
  const found = problems === 0 ? "nothing is damaged" : plural(problems, "problem");
  return `Read back from the store: ${count(same)} of ${plural(messages, "message")}, word for word; ${found} (${count(Math.round(durationMs))} ms).`;
}

function waitingFor({ phase, playing, cursor, source, samples, contextWindow }: RunState): string {
  const used = samples.at(-1)?.used ?? 0;
  if (phase === "failed") return "Nothing plays.";
  if (phase === "opening" || playing) return "The run fills the window. What leaves it, and what stands in its place, is here in a moment.";
  if (cursor < source.length) return "Nothing has left yet. Play, and it is here as soon as something does.";
  return `Nothing had to leave: ${plural(used, "token")} fit into ${count(contextWindow)}. Choose a smaller window to see more.`;
}
