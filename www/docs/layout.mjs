/** The frame of a page: header with search, the list of pages, the article, and what is on this page. */

import { dirname, relative } from "node:path/posix";
import { escape, textOf } from "./markdown.mjs";

const REPOSITORY = "https://github.com/context-compactor/context-compactor";

/** The address of one page of the site from another. */
export const between = (from, to) => {
  const [path, anchor] = to.split("#");
  const address = path === from && anchor !== undefined ? "" : relative(dirname(from), path) || ".";
  return anchor === undefined ? address : `${address}#${anchor}`;
};

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='3' fill='%230d6e6e'/%3E%3Cpath d='M4 5h8M5.5 8h5M7 11h2' stroke='%23fff' stroke-width='1.6' stroke-linecap='round'/%3E%3C/svg%3E";

const mark =
  '<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true"><rect width="24" height="24" rx="5" fill="var(--accent)"/><path d="M6 7.5h12M8.2 12h7.6M10.4 16.5h3.2" stroke="var(--panel)" stroke-width="2.2" stroke-linecap="round"/></svg>';

function list(groups, page, link) {
  const items = ({ url, title, code }) => {
    const current = url === page.url ? ' aria-current="page"' : "";
    return `<li><a href="${link(url)}"${current}>${code ? `<code>${escape(title)}</code>` : escape(title)}</a></li>`;
  };
  return groups.map(({ title, pages }) => `<li><p>${escape(title)}</p>\n<ul>${pages.map(items).join("\n")}</ul></li>`).join("\n");
}

function contents(headings) {
  const shown = headings.filter(({ level }) => level === 2 || level === 3);
  if (shown.length < 2) return "";
  const items = shown.map(({ level, id, html }) => `<li class="level-${level}"><a href="#${id}">${html.replace(/<\/?a\b[^>]*>/g, "")}</a></li>`);
  return `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>${items.join("\n")}</ul></nav>`;
}

function neighbors(groups, page, link) {
  const pages = groups.flatMap((group) => group.pages);
  const at = pages.findIndex(({ url }) => url === page.url);
  if (at < 0) return "";
  const to = (other, name) => (other ? `<a class="${name}" href="${link(other.url)}"><span>${name === "next" ? "Next" : "Before"}</span> ${escape(other.title)}</a>` : "");
  return `<nav class="neighbors" aria-label="Next and previous page">${to(pages[at - 1], "previous")}${to(pages[at + 1], "next")}</nav>`;
}

/**
 * The text of a page. `page` is `{ url, title, about, source, html, headings }`, `assets` has the addresses of `script` and `style`
 * and of the `index` of the search, from the folder of the site.
 */
export function layout(page, groups, assets) {
  const link = (url) => between(page.url, url);
  const pages = list(groups, page, link);
  const source = page.source ? `<p>Made from <a href="${REPOSITORY}/blob/main/${page.source}"><code>${page.source}</code></a></p>` : "";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escape(page.about)}">
<title>${escape(page.title === "context-compactor" ? page.title : `${page.title} · context-compactor`)}</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${link(assets.style)}">
<script>
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {}
</script>
<script type="module" src="${link(assets.script)}"></script>
</head>
<body data-index="${link(assets.index)}">
<a class="skip" href="#content">To the text</a>
<header class="top">
<a class="brand" href="${link("index.html")}">${mark}<span>context-compactor</span></a>
<form class="search" role="search" hidden>
<input type="search" name="q" placeholder="Search" aria-label="Search the docs" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<kbd aria-hidden="true">/</kbd>
<ul id="found" role="listbox" aria-label="Found" hidden></ul>
<p class="hidden" role="status"></p>
</form>
<nav class="actions" aria-label="Site">
<a class="button to-pages" href="#pages">Pages</a>
<a class="button" href="${link("../index.html")}">Demo</a>
<a class="button" href="${REPOSITORY}">GitHub</a>
<button type="button" class="button icon-only" id="theme" hidden></button>
</nav>
</header>
<div class="frame">
<main id="content" tabindex="-1">
<article>
${page.html}</article>
${neighbors(groups, page, link)}
</main>
${contents(page.headings)}
<nav class="pages" id="pages" aria-label="Pages"><ul>${pages}</ul></nav>
</div>
<footer>
<p>MIT or Apache-2.0, at your option.</p>
${source}
</footer>
</body>
</html>
`;
}

/** The first sentence of an article, for search engines and lists. */
export function aboutOf(html) {
  const [, first = ""] = /<p>([\s\S]*?)<\/p>/.exec(html) ?? [];
  const text = textOf(first);
  return /^.{20,}?[.!](?= |$)/.exec(text)?.[0] ?? text.slice(0, 160);
}
