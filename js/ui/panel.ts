/** A panel of a session for any page. */

import type { CompactionPreview, Session } from "context-compactor";
import { element } from "./dom.js";
import { mountContextMap } from "./map.js";
import { messageList } from "./messages.js";
import { count, dollars, plural } from "./words.js";

/** What a panel or a hook asks of a session: one of `openSession`, or an object that asks a server. */
export type ShownSession = Pick<Session<any, any>, "on"> & {
  /** How full the context is, and where each message is. */
  readonly context: Pick<Session["context"], "usage" | "explain">;
  /** The texts of messages. */
  readonly archive: Pick<Session<any, any>["archive"], "history">;
  /** What a compaction would do. */
  readonly snapshots: Pick<Session["snapshots"], "preview">;
};

/** A panel in a page. */
export interface ContextPanel {
  /** Removes it from the page and from the session's listeners. */
  unmount(): void;
}

/** Appends a panel to `parent` that follows `session`: what fills the window, what a compaction would free and cost, and what
 *  became of each message, with its text. Its look is in `context-compactor-ui/styles.css`. */
export function mountContextPanel(parent: Element, session: ShownSession): ContextPanel {
  const root = element("section", { class: "cc cc-panel", "aria-label": "Context" });
  parent.append(root);
  const map = mountContextMap(root, session.context.usage());
  const messages = messageList(session.archive);
  const ask = element("button", { type: "button", class: "cc-button" }, "Preview a compaction");
  const answer = element("p", { class: "cc-answer", role: "status" });
  root.append(element("div", { class: "cc-ask" }, ask, answer), messages.root);

  const say = (error: unknown) => void (answer.textContent = error instanceof Error ? error.message : String(error));
  ask.addEventListener("click", () => {
    ask.disabled = true;
    session.snapshots
      .preview()
      .then((preview) => void (answer.textContent = previewText(preview)), say)
      .finally(() => (ask.disabled = false));
  });

  // However many calls end at once, the ledger is read once after them.
  let timer: ReturnType<typeof setTimeout> | undefined;
  const read = () => {
    timer = undefined;
    session.context.explain().then((ledger) => messages.show(ledger)).catch(say);
  };
  read();
  const stop = session.on("usage", (usage) => {
    map.update(usage);
    // It is not what would be done any more.
    answer.textContent = "";
    timer ??= setTimeout(read, 50);
  });
  return {
    unmount() {
      stop();
      clearTimeout(timer);
      root.remove();
    },
  };
}

function previewText({ tokens, tokensAfter, edits, changes, cost, reason }: CompactionPreview): string {
  if (edits.length === 0) return `Nothing would change: ${reason}`;
  const calls = edits.reduce((sum, { llmCalls }) => sum + llmCalls, 0);
  const said = `${count(tokens)} → about ${count(tokensAfter)} tokens, ${plural(changes.length, "message")} changed, ${plural(calls, "model call")}.`;
  return cost ? `${said} The next calls: about ${dollars(cost.now)} with it, ${dollars(cost.later)} without.` : said;
}
