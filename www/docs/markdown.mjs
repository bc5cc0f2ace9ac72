/** Markdown as HTML: headings that can be linked to, code in color, tables that scroll, and the texts for the search. */

import { Marked, Renderer } from "marked";
import { SugarHigh } from "sugar-high/core";
import { tokenize } from "sugar-high/lang/typescript";

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escape = (text) => String(text).replace(/[&<>"]/g, (character) => entities[character]);

/** The text of HTML, for the search and for labels. */
export function textOf(html) {
  const text = html.replace(/<(?:\/?(?:p|li|tr|td|th|pre|div|dt|dd|h\d)|br)\b[^>]*>/g, " ").replace(/<[^>]+>/g, "");
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" })[entity]).replace(/\s+/g, " ").trim();
}

/** Ids of headings as the repository's host makes them, so that one link works there and here. */
function slugs() {
  const seen = new Map();
  return (text) => {
    const slug = text.toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-");
    const nth = seen.get(slug) ?? 0;
    seen.set(slug, nth + 1);
    return nth === 0 ? slug : `${slug}-${nth}`;
  };
}

/** Kinds of tokens that have a color; the others are as the text is. */
const COLORED = new Map([["keyword", "k"], ["string", "s"], ["comment", "c"]]);
const PROGRAMS = /^(js|mjs|jsx|ts|tsx|javascript|typescript)$/;

function colored(code) {
  const parts = tokenize(code, {}).map(([kind, text], at, all) => {
    // `type:` names a field.
    const name = all[at + 1]?.[1] === ":" ? undefined : COLORED.get(SugarHigh.TokenTypes[kind]);
    return name && text.trim() !== "" ? `<i class="${name}">${escape(text)}</i>` : escape(text);
  });
  return parts.join("");
}

/** A block of code; `language` is what follows the fence. It can be scrolled by the keyboard. */
function codeBlock(code, language = "") {
  const [name] = language.split(" ");
  const html = PROGRAMS.test(name) ? colored(code) : escape(code);
  return `<div class="code"><pre tabindex="0"><code>${html}</code></pre></div>\n`;
}

/**
 * Renders a page. `href` makes an address of a link's, `src` of a picture's. Returns `html`, and the `headings` behind the
 * first: `{ level, id, html }`.
 */
export function render(markdown, { href = (link) => link, src = (link) => link } = {}) {
  const slug = slugs();
  const headings = [];
  const named = new Map();
  const label = (name) => {
    named.set(name, (named.get(name) ?? 0) + 1);
    return named.get(name) === 1 ? name : `${name}, ${named.get(name)}`;
  };
  class Page extends Renderer {
    heading({ tokens, depth }) {
      const html = this.parser.parseInline(tokens);
      const id = slug(textOf(html));
      headings.push({ level: depth, id, html });
      const link = depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
      return `<h${depth} id="${id}">${html}${link}</h${depth}>\n`;
    }
    code({ text, lang }) {
      return codeBlock(text, lang);
    }
    table(token) {
      // Each is a landmark with a name of its own.
      const name = label(`Table: ${textOf(headings.at(-1)?.html ?? "")}`);
      return `<div class="table" tabindex="0" role="region" aria-label="${escape(name)}">${super.table(token)}</div>\n`;
    }
    tablecell(token) {
      // A cell without a text is no heading.
      return token.header && token.text.trim() === "" ? "<td></td>\n" : super.tablecell(token);
    }
    link({ href: target, tokens }) {
      return `<a href="${escape(href(target))}">${this.parser.parseInline(tokens)}</a>`;
    }
    image({ href: target, text }) {
      return `<img src="${escape(src(target))}" alt="${escape(text)}" loading="lazy">`;
    }
  }
  const html = new Marked().setOptions({ renderer: new Page() }).parse(markdown);
  return { html, headings };
}

/** A hover text as HTML. It names pages of the repository by their paths. */
export function renderDoc(text, href) {
  const linked = text.replace(/\bdocs\/([\w-]+\.md)(?: of the repository)?/g, (_, page) => `[${page.replace(".md", "")}](docs/${page})`);
  return render(linked, { href }).html;
}

/** The sections of a page, for the search: `{ id, heading, text }`. */
export function sections(html) {
  const parts = html.split(/(?=<h[1-3] id=")/);
  return parts.flatMap((part) => {
    const [, id, heading] = /^<h[1-3] id="([^"]+)">([\s\S]*?)<\/h[1-3]>/.exec(part) ?? [];
    const body = part.replace(/^<h[1-3][\s\S]*?<\/h[1-3]>/, "");
    return id === undefined ? [] : [{ id, heading: textOf(heading.replace(/<a class="anchor"[\s\S]*/, "")), text: textOf(body) }];
  });
}
