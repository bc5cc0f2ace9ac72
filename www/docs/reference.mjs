/** The pages that are made from declarations: one for each entry of the package, and one for the options. */

import { escape, renderDoc, textOf } from "./markdown.mjs";

/** What is listed before its types, in this order. */
const KINDS = [
  ["function", "Functions"],
  ["class", "Classes"],
  ["constant", "Values"],
  ["type", "Types"],
];

/** Types whose members are the rows of the page of options. */
const OPTIONS = ["CompactOptions", "SessionOptions", "SummarizeOptions", "AdvancedOptions"];

export const entryPage = (name) => `api/${name === "" ? "main" : name}.html`;
export const entryName = (name) => (name === "" ? "context-compactor" : `context-compactor/${name}`);

/** Where a symbol is documented, from the folder of the site. */
const symbolUrl = ({ entry, name }) => `${entryPage(entry)}#${name}`;

/** Addresses of all types by their names; of two with one name the first counts. */
function typeUrls(entries) {
  const urls = new Map();
  for (const { symbols } of entries) {
    for (const { name, kind, home } of symbols) {
      if ((kind === "type" || kind === "class") && !urls.has(name)) urls.set(name, symbolUrl(home));
    }
  }
  return urls;
}

/** A signature in lines that a narrow page can show, with links to the types that it names. */
function signature(text, urls, link, self) {
  const linked = escape(text).replace(/(?<![\w&"./-])[A-Z]\w+\b(?!")/g, (name) =>
    urls.has(name) && name !== self ? `<a href="${link(urls.get(name))}">${name}</a>` : name,
  );
  return `<pre class="signature" tabindex="0"><code>${linked}</code></pre>\n`;
}

function membersList(members, path, context) {
  if (members.length === 0) return "";
  const rows = members.map(({ name, signature: text, doc, members: inner }) => {
    const id = `${path}.${name}`;
    const body = `${renderDoc(doc, context.doc)}${membersList(inner, id, context)}`;
    return `<dt id="${escape(id)}">${signature(text, context.urls, context.link)}</dt>\n<dd>${body}</dd>\n`;
  });
  return `<dl class="members">\n${rows.join("")}</dl>\n`;
}

function symbolSection({ name, kind, signatures, doc, members }, context) {
  const isOptions = OPTIONS.includes(name);
  const more = isOptions ? `<p>Its members are on the page <a href="${context.link("options.html")}">Options</a>.</p>\n` : membersList(members, name, context);
  return (
    `<section class="symbol">\n<h3 id="${name}"><code>${name}</code> <span class="kind">${kind}</span> <a class="anchor" href="#${name}" aria-label="Link to ${name}">#</a></h3>\n` +
    `${signatures.map((text) => signature(text, context.urls, context.link, name)).join("")}${renderDoc(doc, context.doc)}${more}</section>\n`
  );
}

/** What is found of a symbol and its members. */
function found({ name, doc, members }, path = name) {
  const others = members.flatMap((member) => found(member, `${path}.${member.name}`));
  return [{ id: path, heading: path, text: textOf(renderDoc(doc, (link) => link)) }, ...others];
}

/**
 * The page of an entry. `about` is what it is for, in HTML; `link` makes an address from one of the site, `doc` from one of the
 * repository. Returns `{ title, html, headings, sections }`.
 */
export function entryDocument({ name, symbols }, entries, { about, link, doc }) {
  const context = { urls: typeUrls(entries), link, doc };
  const title = entryName(name);
  const own = symbols.filter(({ home }) => home.entry === name);
  const others = symbols.filter(({ home }) => home.entry !== name);
  const headings = [{ level: 1, id: "entry", html: `<code>${title}</code>` }];
  let html = "";
  for (const [kind, heading] of KINDS) {
    const listed = own.filter((symbol) => symbol.kind === kind).sort((one, other) => one.name.localeCompare(other.name));
    if (listed.length === 0) continue;
    const id = heading.toLowerCase();
    headings.push({ level: 2, id, html: heading }, ...listed.map(({ name }) => ({ level: 3, id: name, html: `<code>${name}</code>` })));
    html += `<h2 id="${id}">${heading}</h2>\n${listed.map((symbol) => symbolSection(symbol, context)).join("")}`;
  }
  if (others.length > 0) {
    const items = others.map(({ name, home }) => `<li><a href="${link(symbolUrl(home))}"><code>${name}</code></a> of <code>${entryName(home.entry)}</code></li>`);
    headings.push({ level: 2, id: "also", html: "Also exported here" });
    html += `<h2 id="also">Also exported here</h2>\n<ul>${items.join("\n")}</ul>\n`;
  }
  const names = own.map(({ name }) => `<a href="#${name}"><code>${name}</code></a>`).join(" ");
  html = `<h1 id="entry"><code>${title}</code></h1>\n<p>${about}</p>\n<p class="names">${names}</p>\n${html}`;
  const sections = own.flatMap((symbol) => (OPTIONS.includes(symbol.name) ? found({ ...symbol, members: [] }) : found(symbol)));
  return { title, html, headings, sections: [{ id: "entry", heading: title, text: textOf(about) }, ...sections] };
}

/** The defaults of each preset, from the tables of `docs/presets.md`: by path `[preset, default]`. */
function presetDefaults(markdown) {
  const defaults = new Map();
  for (const table of markdown.split(/\n## /).slice(3)) {
    const [head, , ...rows] = table.split("\n").filter((line) => line.startsWith("|"));
    const cells = (line) => line.split("|").slice(1, -1).map((cell) => cell.trim());
    const presets = cells(head ?? "").slice(1).map((name) => name.replaceAll("`", ""));
    for (const row of rows) {
      const [path, ...values] = cells(row);
      defaults.set(path.replaceAll("`", ""), presets.map((preset, at) => [preset, values[at]]).filter(([, value]) => value !== ""));
    }
  }
  return defaults;
}

/** The page of all options, with the numbers of the presets. */
export function optionsDocument(entries, presets, { link, doc }) {
  const { symbols } = entries.find(({ name }) => name === "");
  const of = (name) => symbols.find((symbol) => symbol.name === name).members;
  const compact = of("CompactOptions");
  const known = new Set(compact.map(({ name }) => name));
  const inner = { summarize: of("SummarizeOptions"), advanced: of("AdvancedOptions") };
  const groups = [
    ["compact", "Of everything that compacts", compact.map((option) => ({ ...option, members: inner[option.name] ?? option.members }))],
    ["session", "Of sessions alone", of("SessionOptions").filter(({ name }) => !known.has(name))],
  ];
  const defaults = presetDefaults(presets);
  const urls = typeUrls(entries);
  const headings = [{ level: 1, id: "options", html: "Options" }];
  const sections = [];

  function row({ name, signature: text, doc: said, members }, path) {
    const id = path === "" ? name : `${path}.${name}`;
    const numbers = defaults.get(id);
    const listed = numbers ? `<p class="defaults">${numbers.map(([preset, value]) => `<code>${preset}</code> ${escape(value)}`).join(" · ")}</p>\n` : "";
    sections.push({ id, heading: id, text: textOf(renderDoc(said, doc)) });
    const rows = members.map((member) => row(member, id)).join("");
    return (
      `<dt id="${escape(id)}"><span class="path">${escape(id)}</span>${signature(text, urls, link)}</dt>\n` +
      `<dd>${renderDoc(said, doc)}${listed}${rows === "" ? "" : `<dl class="members">\n${rows}</dl>\n`}</dd>\n`
    );
  }

  let html =
    `<h1 id="options">Options</h1>\n<p>Every option with its hover text, and the numbers of the presets where they have some. Each number is a default ` +
    `for a window of 200,000 tokens or more. <a href="${doc("docs/presets.md")}">Presets</a> has them side by side.</p>\n`;
  for (const [id, heading, options] of groups) {
    headings.push({ level: 2, id: `of-${id}`, html: heading }, ...options.map(({ name }) => ({ level: 3, id: name, html: `<code>${name}</code>` })));
    html += `<h2 id="of-${id}">${heading}</h2>\n<dl class="members options">\n${options.map((option) => row(option, "")).join("")}</dl>\n`;
  }
  return { title: "Options", html, headings, sections };
}
