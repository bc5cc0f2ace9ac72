import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LedgerEntry } from "../engine.js";
import { toolNames } from "../logic/messages.js";
import type { Compaction, RunState } from "../run/types.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";
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
  }, [state.log.length, at, state.view]);

  const toggle = (index: number) => {
    const next = new Set(open);
    if (!next.delete(index)) next.add(index);
    setOpen(next);
    follow.current = false;
  };
  const onScroll = () => {
    const box = list.current;
    if (box) follow.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  };

  const shown = state.log.slice(0, at);
  return (
    <ol class="timeline" ref={list} onScroll={onScroll} aria-label="Messages of the session">
      {shown.map((message, index) => [
        <MessageRow key={index} index={index} message={message} tokens={state.weights[index] ?? 0} entry={entries.get(index)} names={names}
          open={open.has(index)} current={index === at - 1} onToggle={toggle} onOffload={onOffload} />,
        ...(markers.get(index + 1) ?? []).map((compaction) => <Marker key={`c${compaction.number}`} compaction={compaction} onOpen={onCompaction} />),
      ])}
      {shown.length === 0 && <li class="empty">Press Play: each message of the run appears here with what became of it.</li>}
    </ol>
  );
}

function Marker({ compaction, onOpen }: { compaction: Compaction; onOpen(number: number): void }) {
  const { number, kind, tokensBefore, tokensAfter } = compaction;
  return (
    <li class={`fold ${kind}`}>
      <button type="button" onClick={() => onOpen(number)}>
        <Icon name={kind === "summary" ? "summarised" : "offloaded"} />
        <span>{kind === "summary" ? "Summarised" : "Offloaded"}</span>
        <span class="number">{count(tokensBefore)} → {count(tokensAfter)}</span>
        <span class="more">what changed <Icon name="chevron" /></span>
      </button>
    </li>
  );
}
