/** The search: an index that is made here of the texts of all pages, when it is first needed. */

import MiniSearch from "minisearch";

/** Address, title of the page, heading of the section, and its text. */
type Section = [url: string, title: string, heading: string, text: string];
interface Found {
  url: string;
  title: string;
  heading: string;
  text: string;
}

const MOST = 12;

/** Words as they are, and the parts of names: `keep.userMessages` is found by `userMessages` and by `messages`. */
function words(text: string): string[] {
  const whole = text.split(/[^\p{L}\p{N}_$]+/u).filter(Boolean);
  return whole.flatMap((word) => {
    const parts = word.split(/(?<=[a-z])(?=[A-Z])|_/).filter(Boolean);
    return parts.length > 1 ? [word, ...parts] : [word];
  });
}

/** A guide tells more than a member of a type, and that more than the code of an example. */
const weight = (url: string) => (url.startsWith("examples/") ? 0.2 : url.startsWith("api/") ? 0.15 : 1);

async function load(address: string): Promise<MiniSearch<Found>> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status}`);
  const sections = (await response.json()) as Section[];
  const index = new MiniSearch<Found>({
    idField: "url",
    fields: ["heading", "title", "text"],
    storeFields: ["url", "title", "heading", "text"],
    tokenize: words,
    searchOptions: { boost: { heading: 4, title: 2 }, boostDocument: weight, prefix: true, fuzzy: (term) => (term.length > 4 ? 0.2 : 0), combineWith: "AND" },
  });
  const seen = new Set<string>();
  for (const [url, title, heading, text] of sections) {
    if (seen.has(url)) continue;
    seen.add(url);
    index.add({ url, title, heading, text });
  }
  return index;
}

/** The part of a text around the first word that was found. */
function excerpt(text: string, terms: string[]): string {
  const lower = text.toLowerCase();
  const at = Math.max(0, Math.min(...terms.map((term) => lower.indexOf(term)).filter((place) => place >= 0)));
  const from = Number.isFinite(at) && at > 60 ? at - 40 : 0;
  return `${from > 0 ? "… " : ""}${text.slice(from, from + 120)}${text.length > from + 120 ? " …" : ""}`;
}

/** Makes the form of the header work. `address` is that of the texts. */
export function search(form: HTMLFormElement, address: string): void {
  const input = form.querySelector("input")!;
  const list = form.querySelector("ul")!;
  const status = form.querySelector("[role=status]")!;
  const base = new URL(".", new URL(address, location.href));
  let loading: Promise<MiniSearch<Found>> | undefined;
  let chosen = -1;

  const index = () => {
    loading ??= load(address);
    loading.catch(() => (loading = undefined));
    return loading;
  };
  const choose = (nth: number) => {
    const items = [...list.children];
    items[chosen]?.setAttribute("aria-selected", "false");
    chosen = items.length === 0 ? -1 : (nth + items.length) % items.length;
    items[chosen]?.setAttribute("aria-selected", "true");
    items[chosen]?.scrollIntoView({ block: "nearest" });
    if (chosen < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `found-${chosen}`);
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
  };
  const item = ({ url, title, heading, text, terms }: Found & { terms: string[] }, nth: number) => {
    const entry = document.createElement("li");
    entry.id = `found-${nth}`;
    entry.role = "option";
    entry.dataset.url = new URL(url, base).href;
    const name = document.createElement("b");
    name.textContent = heading;
    const page = document.createElement("span");
    page.textContent = heading === title ? "" : title;
    const part = document.createElement("p");
    part.textContent = excerpt(text, terms);
    entry.append(name, " ", page, part);
    return entry;
  };
  const show = async () => {
    const query = input.value.trim();
    if (query === "") return close();
    let found: (Found & { terms: string[] })[];
    try {
      // What is named so is first.
      const isNamed = ({ heading }: { heading: string }) => heading.toLowerCase() === query.toLowerCase();
      const all = (await index()).search(query) as unknown as (Found & { terms: string[] })[];
      found = [...all.filter(isNamed), ...all.filter((hit) => !isNamed(hit))].slice(0, MOST);
    } catch {
      status.textContent = "The search could not be loaded.";
      return;
    }
    // Something else was typed meanwhile.
    if (query !== input.value.trim()) return;
    list.replaceChildren(...found.map(item));
    if (found.length === 0) list.append(Object.assign(document.createElement("li"), { textContent: "Nothing was found.", role: "option", className: "none" }));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    status.textContent = found.length === 1 ? "1 result" : `${found.length} results`;
    chosen = -1;
    choose(0);
  };
  const open = (entry: Element | undefined) => {
    const { url } = (entry as HTMLElement | undefined)?.dataset ?? {};
    if (!url) return;
    close();
    input.blur();
    location.href = url;
  };

  input.addEventListener("focus", () => void index().catch(() => undefined));
  input.addEventListener("input", () => void show());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Escape") {
      input.value = "";
      close();
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    open(list.children[chosen]);
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => open((event.target as Element).closest("li") ?? undefined));
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget as Node | null)) close();
  });
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.key !== "/" || event.ctrlKey || event.metaKey || target.closest("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    input.focus();
  });
  form.hidden = false;
}
