/** A list of the session's messages with what became of each; it opens to their texts. */

import type { LedgerEntry, Session } from "context-compactor";
import { element, icon } from "./dom.js";
import { textsAt } from "./texts.js";
import { FATE_HINTS, FATE_PATHS, FATES, count, plural, type Fate } from "./words.js";

/** As many rows are added at a time. */
const ROWS = 100;

interface Row {
  element: HTMLElement;
  show(entry: LedgerEntry, text: string | undefined): void;
}

/** A word with its color and icon. */
function badge(fate: Fate, word: string): HTMLElement {
  return element("span", { class: `cc-fate cc-fate-${fate}`, title: FATE_HINTS[fate] }, icon(FATE_PATHS[fate]), word);
}

function rowOf(index: number): Row {
  const preview = element("span", { class: "cc-preview" });
  const fate = element("span");
  const about = element("p");
  const text = element("pre", { tabindex: "0" });
  const head = element("summary", {}, element("span", { class: "cc-index" }, count(index)), preview, fate);
  const box = element("details", {}, head, about, text);
  return {
    element: element("li", {}, box),
    show(entry, said = "") {
      preview.textContent = said.slice(0, 160).replace(/\s+/g, " ");
      text.textContent = said;
      fate.replaceChildren(badge(entry.fate, entry.fate));
      about.textContent = [FATE_HINTS[entry.fate], entry.reason].filter(Boolean).join(": ");
    },
  };
}

/** The list, closed at first: only then the archive is read. */
export function messageList(archive: Pick<Session["archive"], "history">) {
  const legend = element("span", { class: "cc-legend" });
  const earlier = element("button", { type: "button", class: "cc-link" });
  const list = element("ol", { "aria-label": "Messages of the session" });
  const root = element("details", { class: "cc-messages" }, element("summary", {}, "Messages ", legend), earlier, list);
  const rows = new Map<number, Row>();
  const texts = new Map<number, string>();
  let ledger: readonly LedgerEntry[] = [];
  let shown = ROWS;

  async function fill() {
    if (!root.open) return;
    const entries = ledger.slice(-shown);
    const missing = new Set(entries.map(({ index }) => index).filter((index) => !texts.has(index)));
    if (missing.size > 0) for (const [index, text] of await textsAt(archive, missing)) texts.set(index, text);
    for (const entry of entries) {
      const row = rows.get(entry.index) ?? rowOf(entry.index);
      rows.set(entry.index, row);
      // An erased message says something else than before.
      row.show(entry, texts.get(entry.index));
    }
    const wanted = entries.map(({ index }) => rows.get(index)?.element).filter((one) => one !== undefined);
    if (wanted.length !== list.children.length || wanted[0] !== list.firstChild || wanted.at(-1) !== list.lastChild) list.replaceChildren(...wanted);
    earlier.hidden = entries.length === ledger.length;
    earlier.textContent = `Show earlier messages (${count(ledger.length - entries.length)})`;
  }
  const failed = (error: unknown) => void (legend.textContent = error instanceof Error ? error.message : String(error));
  root.addEventListener("toggle", () => void fill().catch(failed));
  earlier.addEventListener("click", () => {
    shown += ROWS;
    void fill().catch(failed);
  });

  return {
    root,
    async show(next: readonly LedgerEntry[]): Promise<void> {
      ledger = next;
      const counts = FATES.map((fate) => ({ fate, messages: next.filter((entry) => entry.fate === fate).length }));
      legend.replaceChildren(...counts.filter(({ messages }) => messages > 0).map(({ fate, messages }) => badge(fate, `${count(messages)} ${fate}`)));
      root.setAttribute("aria-label", plural(next.length, "message"));
      await fill();
    },
  };
}
