import { useMemo, useState } from "preact/hooks";
import type { SearchHit } from "../engine.js";
import { namesThatLeft } from "../logic/left.js";
import type { RunController } from "../run/controller.js";
import { describe } from "../run/describe.js";
import type { Compaction, RunState } from "../run/types.js";
import { Content, Entry } from "./entry.js";
import { count, plural } from "./labels.js";

interface Props {
  run: RunController;
  state: RunState;
  /** What left with it is proposed. */
  compaction: Compaction | undefined;
}

interface Answer {
  query: string;
  hits: SearchHit[];
}

/** The session's own search over everything that was said, as the tools of a model have it. */
export function Ask({ run, state, compaction }: Props) {
  const [query, setQuery] = useState("");
  const [answer, setAnswer] = useState<Answer | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [open, setOpen] = useState<string | undefined>();
  const names = useMemo(
    () => (compaction ? namesThatLeft(state.log, compaction.ledger, compaction.after) : []),
    [compaction],
  );
  const ask = (asked: string) => {
    setQuery(asked);
    setError(undefined);
    if (asked.trim() === "") return setAnswer(undefined);
    run.search(asked).then(
      (found) => {
        const hits = [...found].sort((a, b) => Number(a.place === "context") - Number(b.place === "context"));
        setAnswer({ query: asked, hits });
        setOpen(hits[0]?.ref);
      },
      (reason: unknown) => setError(describe(reason)),
    );
  };
  return (
    <div class="ask">
      <form
        role="search"
        aria-label="Ask for something that left"
        onSubmit={(event) => {
          event.preventDefault();
          ask(query);
        }}
      >
        <label for="ask">Ask for something that left</label>
        <input
          id="ask"
          type="search"
          autocomplete="off"
          value={query}
          placeholder={names.length > 0 ? `${names[0]} …` : "a name, a path, a question"}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        <button type="submit" class="button">
          Ask
        </button>
        <p class="names">
          <span>{names.length > 0 ? "No longer in the prompt:" : "What has left is proposed here."}</span>
          {names.map((name) => (
            <button key={name} type="button" class="chip" onClick={() => ask(name)}>
              {name}
            </button>
          ))}
        </p>
      </form>
      <p class="found" role="status">
        {answer && `${plural(answer.hits.length, "passage")} found for “${answer.query.trim()}”`}
      </p>
      {error && (
        <p class="error banner" role="alert">
          {error}
        </p>
      )}
      {answer && answer.hits.length > 0 && (
        <ul class="offloads hits" aria-label="Passages found">
          {answer.hits.map(({ ref, index, role, tool, target, snippet, place }) => (
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
              <Content run={run} refName={ref} words={answer.query.trim().split(/\s+/)}>
                Read back word for word with <code>{ref}</code>, as the model can with its recall tools
              </Content>
            </Entry>
          ))}
        </ul>
      )}
    </div>
  );
}

const PLACE: Record<SearchHit["place"], string> = {
  context: "still in the prompt",
  offloaded: "left, behind a reference",
  summarized: "left, into the summary",
  elsewhere: "in another session",
};
