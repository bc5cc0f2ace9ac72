import { MessageFate } from "context-compactor-ui/react";
import { Component } from "preact";
import type { LedgerEntry, Message } from "../engine.js";
import { answersOf, callsOf, kindOf, previewOf } from "../logic/messages.js";
import { count } from "./labels.js";
import { MessageBody } from "./message-body.js";

interface Props {
  index: number;
  message: Message;
  tokens: number;
  entry: LedgerEntry | undefined;
  names: Map<string, string>;
  open: boolean;
  current: boolean;
  onToggle(index: number): void;
  onOffload(ref: string): void;
}

/** One message of the timeline. A class, so that rows which did not change are not rendered again. */
export class MessageRow extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    const { entry, message, open, current } = this.props;
    return (
      next.message !== message ||
      next.open !== open ||
      next.current !== current ||
      next.entry?.fate !== entry?.fate ||
      next.entry?.ref !== entry?.ref ||
      next.entry?.checkpoint !== entry?.checkpoint
    );
  }

  override render({ index, message, tokens, entry, names, open, current, onToggle, onOffload }: Props) {
    const kind = kindOf(message);
    const tools =
      kind === "tool"
        ? answersOf(message).map((id) => names.get(id) ?? "result")
        : callsOf(message).map(({ name }) => name);
    const fate = entry?.fate ?? "verbatim";
    return (
      <li class={`message ${kind} is-${fate} ${current ? "current" : ""}`} id={`message-${index}`}>
        <button type="button" class="summary" aria-expanded={open} onClick={() => onToggle(index)}>
          <span class="index number">{index + 1}</span>
          <span class="role">{kind === "tool" ? "result" : kind}</span>
          <span class="what">
            {[...new Set(tools)].map((tool) => (
              <code key={tool}>{tool}</code>
            ))}
            <span>{previewOf(message)}</span>
          </span>
          <span class="number tokens">{count(tokens)}</span>
          <MessageFate fate={fate} />
        </button>
        {open && <MessageBody message={message} entry={entry} onOffload={onOffload} />}
      </li>
    );
  }
}
