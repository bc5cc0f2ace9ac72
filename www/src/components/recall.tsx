import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SearchHit } from "../engine.js";
import { argumentsLine, callsOf } from "../logic/messages.js";
import type { RunController } from "../run/controller.js";
import type { Offload, RunState } from "../run/types.js";
import { describe } from "../run/describe.js";
import { Icon } from "./icon.js";
import { count, plural } from "./labels.js";

interface Props {
  run: RunController;
  state: RunState;
  selected: string | undefined;
  onSelect(ref: string | undefined): void;
}

/** What left the context and can be had back: results behind references, and by search everything that was said. */
export function Recall({ run, state, selected, onSelect }: Props) {
  return (
    <>
      <Search run={run} key={state.id} />
      {state.offloads.length === 0 ? (
        <p class="empty">
          Nothing is behind a reference yet. What leaves the context stays on this device, word for word: search finds
          it.
        </p>
      ) : (
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
      )}
    </>
  );
}

/** The session's own search, as the tools of a model have it. */
function Search({ run }: { run: RunController }) {
  const [hits, setHits] = useState<SearchHit[] | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [query, setQuery] = useState("");
  const [open, setOpen] = useState<string | undefined>();
  const find = () => {
    setError(undefined);
    if (query.trim() === "") return setHits(undefined);
    run.search(query).then(setHits, (reason: unknown) => setError(describe(reason)));
  };
  return (
    <>
      <form
        class="find"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          find();
        }}
      >
        <input
          type="search"
          value={query}
          placeholder="Recall what was said: half-even, FIN-212 …"
          aria-label="Search the whole session"
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        <button type="submit" class="button">
          Search
        </button>
        <span role="status">{hits && `${plural(hits.length, "passage")} found`}</span>
      </form>
      {error && (
        <p class="error banner" role="alert">
          {error}
        </p>
      )}
      {hits && hits.length > 0 && (
        <ul class="offloads hits" aria-label="Passages found">
          {hits.map(({ ref, index, role, tool, target, snippet, place }) => (
            <Entry
              key={ref}
              id={`hit-${ref}`}
              title={[tool ?? role, target].filter(Boolean).join(" ")}
              line={snippet}
              size={`message ${count(index + 1)}`}
              place={PLACE[place]}
              open={ref === open}
              onToggle={(isOpen) => setOpen(isOpen ? ref : undefined)}
            >
              <Content run={run} refName={ref}>
                Read back with <code>{ref}</code>
              </Content>
            </Entry>
          ))}
        </ul>
      )}
    </>
  );
}

const PLACE: Record<SearchHit["place"], string> = {
  context: "in context",
  offloaded: "behind a reference",
  summarized: "summarized",
};

interface EntryProps {
  id: string;
  isRetired?: boolean;
  title: string;
  line: ComponentChildren;
  size: string;
  place: string;
  open: boolean;
  onToggle(open: boolean): void;
  children: ComponentChildren;
}

function Entry({ id, isRetired, title, line, size, place, open, onToggle, children }: EntryProps) {
  return (
    <li id={id} class={`${isRetired ? "retired" : ""} ${open ? "open" : ""}`}>
      <button type="button" class="head" aria-expanded={open} onClick={() => onToggle(!open)}>
        <span class="kind offload">
          <Icon name="offloaded" />
        </span>
        <span class="title">
          <b>{title}</b>
          <span>{line}</span>
        </span>
        <span class="change number">
          <b>{size}</b>
          <span>{place}</span>
        </span>
        <Icon name="chevron" />
      </button>
      {open && children}
    </li>
  );
}

interface ContentProps {
  run: RunController;
  refName: string;
  sha256?: string | undefined;
  /** What it is. */
  children: ComponentChildren;
}

function Content({ run, refName, sha256, children }: ContentProps) {
  const [text, setText] = useState<string | undefined>();
  const [error, setError] = useState<string | undefined>();
  useEffect(() => {
    let gone = false;
    run.read(refName).then(
      (value) => gone || setText(value),
      (reason: unknown) => gone || setError(describe(reason)),
    );
    return () => {
      gone = true;
    };
  }, [run, refName]);
  return (
    <div class="body">
      <p class="facts">
        {children}
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
      {sha256 && (
        <p class="facts">
          SHA-256 <code>{sha256}</code>
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
