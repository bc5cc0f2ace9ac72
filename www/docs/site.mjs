/** The pages of the docs: what the repository has as Markdown, its examples, and what its declarations say. */

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, extname, join, normalize } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { readEntries } from "./declarations.mjs";
import { aboutOf, between, layout } from "./layout.mjs";
import { render, sections, textOf } from "./markdown.mjs";
import { entryDocument, entryName, entryPage, optionsDocument } from "./reference.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const REPOSITORY = "https://github.com/context-compactor/context-compactor";
/** The list of pages, which is a page itself. */
const HOME = "docs/README.md";

const read = (path) => readFileSync(join(root, path), "utf8");

/** The address of a page that is made from a file or a folder of the repository. */
function urlOf(path) {
  if (path === HOME) return "index.html";
  if (path === "README.md") return "overview.html";
  if (path.startsWith("docs/")) return path.slice("docs/".length).replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
  if (path.startsWith("examples/")) return `${path}.html`;
  if (path.endsWith("/README.md")) return `${basename(dirname(path)).replace("pkg-", "")}.html`;
  return `${path.replace(/\.md$/, "").toLowerCase()}.html`;
}

/** The groups of pages that `docs/README.md` lists: `{ title, pages: [{ source, url, title }] }`. */
function listed() {
  return read(HOME)
    .split(/\n## /)
    .slice(1)
    .map((part) => {
      const links = Array.from(part.matchAll(/^\* \[([^\]]+)\]\(([^)#]+)\)/gm), ([, title, link]) => ({ title, source: normalize(join("docs", link)) }));
      return { title: part.split("\n")[0], pages: links.map((page) => ({ ...page, url: urlOf(page.source) })) };
    })
    .filter(({ pages }) => pages.length > 0);
}

/** What an address in a page of the repository leads to: a page of the site, else the file at the repository's host. */
function resolver(source, url, sources, pictures) {
  const folder = dirname(source);
  const parts = (link) => {
    const [path, anchor] = link.split("#");
    return [path === "" ? source : normalize(join(folder, path)).replace(/\/$/, ""), anchor];
  };
  const href = (link) => {
    if (/^[a-z]+:/.test(link)) return link;
    const [path, anchor] = parts(link);
    const behind = anchor === undefined ? "" : `#${anchor}`;
    if (sources.has(path)) return between(url, `${sources.get(path)}${behind}`);
    const found = statSync(join(root, path), { throwIfNoEntry: false });
    if (!found) throw new Error(`${source} names ${link}, which does not exist`);
    return `${REPOSITORY}/${found.isDirectory() ? "tree" : "blob"}/main/${path}${behind}`;
  };
  const src = (link) => {
    const [path] = parts(link);
    pictures.add(path);
    return between(url, `pictures/${basename(path)}`);
  };
  return { href, src };
}

/** An example: what it says of itself, and its programs. */
function exampleText(folder) {
  const programs = readdirSync(join(root, folder)).filter((name) => /\.(mjs|ts|jsx|html|toml)$/.test(name)).sort();
  // What is to be read first is first.
  const order = (name) => (/^(agent|main|worker|chat)\./.test(name) ? 0 : 1);
  programs.sort((one, other) => order(one) - order(other));
  const blocks = programs.map((name) => `## ${name}\n\n\`\`\`\`${extname(name).slice(1)}\n${read(`${folder}/${name}`)}\`\`\`\`\n`);
  return `${read(`${folder}/README.md`)}\n${blocks.join("\n")}`;
}

const entryRows = () =>
  new Map(Array.from(read("docs/entries.md").matchAll(/^\| `(context-compactor[\w/.-]*)` \| (.+) \|$/gm), ([, name, about]) => [name, about]));

/** The reference: a page for each entry and one for the options. */
function reference(sources, pictures) {
  const folder = join(root, "pkg");
  const entries = readEntries(folder, JSON.parse(read("pkg/package.json")));
  const abouts = entryRows();
  const to = (url) => ({ link: (target) => between(url, target), doc: (link) => resolver("README.md", url, sources, pictures).href(link) });
  const pages = entries.map((entry) => {
    const url = entryPage(entry.name);
    const said = abouts.get(entryName(entry.name));
    if (!said) throw new Error(`docs/entries.md has no row for ${entryName(entry.name)}`);
    const { href } = resolver("docs/entries.md", url, sources, pictures);
    const about = `${render(said[0].toUpperCase() + said.slice(1), { href }).html.replace(/<\/?p>/g, "").trim()}.`;
    return { url, code: true, about: textOf(about), ...entryDocument(entry, entries, { about, ...to(url) }) };
  });
  const options = { url: "options.html", about: "Every option, its default and the numbers of each preset.", ...optionsDocument(entries, read("docs/presets.md"), to("options.html")) };
  return { pages, options };
}

/**
 * Makes the site: texts and bytes by path. `assets` has the addresses of `script` and `style`, from its folder. Throws where a
 * page names a file that does not exist.
 */
export function makeSite(assets) {
  const groups = listed();
  const sources = new Map([[HOME, "index.html"], ...groups.flatMap(({ pages }) => pages.map(({ source, url }) => [source, url]))]);
  const pictures = new Set();
  const made = reference(sources, pictures);
  groups.find(({ title }) => title === "Reference").pages.push(made.options, ...made.pages);

  const texts = [{ source: HOME, url: "index.html", title: "context-compactor" }, ...groups.flatMap(({ pages }) => pages)];
  const pages = texts.map((page) => {
    if (page.html) return page;
    const isExample = page.source.startsWith("examples/");
    const { href, src } = resolver(isExample ? `${page.source}/README.md` : page.source, page.url, sources, pictures);
    const { html, headings } = render(isExample ? exampleText(page.source) : read(page.source), { href, src });
    return { ...page, html, headings, about: aboutOf(html), sections: sections(html) };
  });

  const files = new Map(pages.map((page) => [page.url, layout(page, groups, { ...assets, index: "search.json" })]));
  for (const path of pictures) files.set(`pictures/${basename(path)}`, readFileSync(join(root, path)));
  const index = pages.flatMap(({ url, title, sections }) => sections.map(({ id, heading, text }, nth) => [nth === 0 ? url : `${url}#${id}`, title, heading, text]));
  files.set("search.json", JSON.stringify(index));
  return files;
}

/** Files whose changes change the site. */
export function inputs() {
  const pages = listed().flatMap(({ pages }) => pages.map(({ source }) => source));
  return [HOME, "pkg/package.json", "docs/presets.md", ...pages].map((path) => join(root, path)).filter(existsSync);
}

