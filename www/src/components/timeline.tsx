import { CompactionDivider } from "context-compactor-ui/react";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LedgerEntry, Message } from "../engine.js";
import { fullTextOf, toolNames } from "../logic/messages.js";
import type { Compaction, RunState } from "../run/types.js";
import { plural } from "./labels.js";
import { MessageRow } from "./message-row.js";

interface Props {
  state: RunState;
  at: number;
  ledger: readonly LedgerEntry[];
  onCompaction(number: number): void;
  onOffload(ref: string): void;
}

/** Every message of the session with its fate, and the compactions between them. Follows the run until the reader scrolls. */
export function Timeline({ state, at, ledger, onCompaction, onOffload }: Props) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const list = useRef<HTMLOListElement>(null);
  const follow = useRef(true);
  const lastTop = useRef(0);
  const [query, setQuery] = useState("");
  const names = useMemo(() => toolNames(state.source), [state.source]);
  const entries = useMemo(() => new Map(ledger.map((entry) => [entry.index, entry])), [ledger]);
  const markers = useMemo(() => Map.groupBy(state.compactions, ({ x }) => x), [state.compactions]);

  useEffect(() => {
    const box = list.current;
    if (!box) return;
    if (state.view === undefined) {
      if (follow.current) box.scrollTop = box.scrollHeight;
      return;
    }
    const row = box.querySelector<HTMLElement>(`#message-${Math.max(0, at - 1)}`);
    if (row) box.scrollTop = row.offsetTop - box.offsetTop - box.clientHeight / 2;
  }, [state.log.length, state.compactions.length, at, state.view, query === ""]);

  const toggle = (index: number) => {
    const next = new Set(open);
    if (!next.delete(index)) next.add(index);
    setOpen(next);
    follow.current = false;
  };
  const onScroll = () => {
    const box = list.current;
    if (!box) return;
    // Growing content fires scroll events too: only going up means that the reader took over.
    if (box.scrollTop < lastTop.current) follow.current = false;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < 48) follow.current = true;
    lastTop.current = box.scrollTop;
  };

  const needle = query.trim().toLowerCase();
  const matches = (message: Message) => needle === "" || fullTextOf(message).toLowerCase().includes(needle);
  const shown = state.log.slice(0, at);
  const found = needle === "" ? undefined : shown.filter(matches).length;
  return (
    <div class="follow">
      <Find
        query={query}
        found={found}
        inContext={state.context.filter(matches).length}
        live={state.view === undefined}
        onQuery={setQuery}
      />
      <ol class="timeline" ref={list} onScroll={onScroll} aria-label="Messages of the session">
        {shown.map(
          (message, index) =>
            matches(message) && [
              <MessageRow
                key={index}
                index={index}
                message={message}
                tokens={state.weights[index] ?? 0}
                entry={entries.get(index)}
                names={names}
                open={open.has(index)}
                current={index === at - 1}
                onToggle={toggle}
                onOffload={onOffload}
              />,
              ...(needle === "" ? (markers.get(index + 1) ?? []) : []).map((compaction) => (
                <Marker key={`c${compaction.number}`} compaction={compaction} onOpen={onCompaction} />
              )),
            ],
        )}
        {found === 0 && <li class="empty">No message so far says “{query.trim()}”.</li>}
        {shown.length === 0 && (
          <li class="empty">Press Play: each message of the run appears here with what became of it.</li>
        )}
      </ol>
    </div>
  );
}

interface FindProps {
  query: string;
  found: number | undefined;
  inContext: number;
  live: boolean;
  onQuery(query: string): void;
}

/** Where a fact is now: said how often, and still before the model's eyes or not. */
function Find({ query, found, inContext, live, onQuery }: FindProps) {
  return (
    <div class="find" role="search">
      <input
        type="search"
        value={query}
        placeholder="Find a fact: FIN-212, integer cents, 0043 …"
        aria-label="Find a fact in the session"
        onInput={(event) => onQuery(event.currentTarget.value)}
      />
      <span role="status">
        {found !== undefined && found > 0 && `said in ${plural(found, "message")}`}
        {found !== undefined &&
          found > 0 &&
          live &&
          (inContext > 0 ? (
            <b class="yes"> · in the context now</b>
          ) : (
            <b class="no"> · not in the context now, stored in full</b>
          ))}
      </span>
    </div>
  );
}

function Marker({ compaction, onOpen }: { compaction: Compaction; onOpen(number: number): void }) {
  const { number, previousTokens, tokensAfter, edits, summary } = compaction;
  const shown = { previousTokens, currentTokens: tokensAfter, edits, ...(summary === undefined ? {} : { summary }) };
  return (
    <li>
      <CompactionDivider compaction={shown} onShow={() => onOpen(number)} />
    </li>
  );
}
