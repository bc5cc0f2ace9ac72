/** The context window as a bar and a list: what fills it, and where it is compacted. */

import type { ContextUsage } from "context-compactor";
import { element } from "./dom.js";
import { categoryColor, count, percent } from "./words.js";

/** What a context map shows, as `session.context.usage()` has it. */
export type MapUsage = Pick<ContextUsage, "usedTokens" | "maxTokens" | "threshold" | "categories"> & {
  /** A compaction may come below the threshold, as with the option `economy`. */
  isLatest?: boolean;
};

/** A context map in a page. */
export interface ContextMap {
  /** Shows another usage. */
  update(usage: MapUsage): void;
  /** Removes it from the page. */
  unmount(): void;
}

/** Appends a context map to `parent`: how full the window is, by category, and the threshold of the next compaction. It shows
 *  what it is given; `mountContextPanel` follows a session. Its look is in `context-compactor-ui/styles.css`. */
export function mountContextMap(parent: Element, usage: MapUsage): ContextMap {
  const used = element("strong");
  const of = element("span", { class: "cc-of" });
  const bar = element("div", { class: "cc-bar", role: "meter", "aria-label": "Context used", "aria-valuemin": "0" });
  const mark = element("b", { class: "cc-threshold" });
  bar.append(mark);
  const acts = element("span");
  const list = element("ul", { class: "cc-categories" });
  const reading = element("div", { class: "cc-reading" }, element("span", { class: "cc-label" }, "Tokens in context"), used, " ", of);
  const root = element("div", { class: "cc cc-map" }, reading, bar, element("p", { class: "cc-scale" }, acts), list);
  parent.append(root);

  const update = ({ usedTokens, maxTokens, threshold, categories, isLatest }: MapUsage) => {
    const when = `compacts at ${count(threshold)}${isLatest ? " at the latest" : ""}`;
    const at = Math.min(100, (threshold / maxTokens) * 100);
    used.textContent = count(usedTokens);
    of.textContent = `of ${count(maxTokens)} · ${percent(usedTokens / maxTokens)}`;
    acts.textContent = when;
    mark.style.left = acts.style.left = `${at}%`;
    // The words stay inside at both ends.
    acts.style.transform = `translateX(-${at}%)`;
    bar.setAttribute("aria-valuemax", String(maxTokens));
    bar.setAttribute("aria-valuenow", String(Math.min(usedTokens, maxTokens)));
    bar.setAttribute("aria-valuetext", `${count(usedTokens)} of ${count(maxTokens)} tokens, ${when}`);
    categories.forEach(({ name, tokens, kind }, nth) => {
      const part = (bar.children[nth] === mark ? bar.insertBefore(element("i"), mark) : bar.children[nth]) as HTMLElement;
      const row = (list.children[nth] ?? list.appendChild(element("li", {}, element("i"), element("span"), element("span", { class: "cc-number" })))) as HTMLElement;
      const [swatch, label, number] = row.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      for (const one of [part, row]) one.className = `cc-${kind}`;
      row.classList.toggle("cc-none", tokens === 0);
      part.title = `${name}: ${count(tokens)}`;
      part.style.width = `${(tokens / maxTokens) * 100}%`;
      part.style.background = swatch.style.background = kind === "used" ? categoryColor(name) : "";
      label.textContent = name;
      number.textContent = count(tokens);
    });
    while (bar.children.length > categories.length + 1) bar.children[categories.length]?.remove();
    while (list.children.length > categories.length) list.lastChild?.remove();
  };
  update(usage);
  return { update, unmount: () => root.remove() };
}
