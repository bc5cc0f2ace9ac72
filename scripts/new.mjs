/**
 * `npm run new-format -- NAME`, `new-rung`, `new-event`, `new-store`: the files of a new thing, its line in every table, and a test.
 * All checks pass afterwards. What is to be filled in is printed, with its place. `--dry-run` only prints the edits.
 *
 * `scripts/new/KIND.mjs` has what a kind needs: `files`, each from a template beside it, and `edits` by an anchor in a file that
 * is there. A line that ends in `//~ what` is one to fill in; the mark itself is not written.
 */

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Problem, root, script } from "./process.mjs";

/** Words of Rust and JavaScript, which cannot name a module or a function. */
const RESERVED =
  "abstract as async await become box break case catch class const continue crate debugger default delete do dyn else enum export extends extern false final finally fn for function gen if impl import in instanceof interface let loop macro match mod move mut new null override package private protected pub public ref return self static struct super switch this throw trait true try type typeof union unsafe unsized use var virtual void where while with yield";

const MARK = / *\/\/~ (.*)$/;

/** How an edit is made: each takes the lines of a file, an anchor and the new text, and is false where there is no anchor. */
const HOW = {
  before: (lines, anchor, text) => insert(lines, anchor, 0, text),
  after: (lines, anchor, text) => insert(lines, anchor, 1, text),
  /** Among neighboring lines that a pattern names by its last group. */
  sorted(lines, pattern, text) {
    const name = (line) => pattern.exec(line)?.at(-1);
    const first = lines.findIndex(name);
    if (first < 0) return false;
    const length = lines.slice(first).findIndex((line) => !name(line));
    const block = lines.slice(first, length < 0 ? undefined : first + length);
    const at = block.findIndex((line) => name(line) > name(text));
    lines.splice(first + (at < 0 ? block.length : at), 0, text);
    return true;
  },
  /** In lines: what a pattern finds, replaced as by `replace`. */
  within(lines, pattern, text) {
    const found = lines.flatMap((line, at) => (pattern.test(line) ? [at] : []));
    for (const at of found) lines[at] = lines[at].replace(pattern, text);
    return found.length > 0;
  },
  /** In a list on one line, whose items are the pattern's second group: in order, where they are in order. */
  list: (lines, pattern, item) =>
    HOW.within(lines, pattern, (_, begin, all, end) => {
      const items = all.split(", ").filter(Boolean);
      const isSorted = items.every((other, nth) => nth === 0 || items[nth - 1] < other);
      const greater = isSorted ? items.findIndex((other) => other > item) : -1;
      return begin + items.toSpliced(greater < 0 ? items.length : greater, 0, item).join(", ") + end;
    }),
};

/** An anchor is the one line with this text. */
function insert(lines, anchor, behind, text) {
  const found = lines.flatMap((line, at) => (line.includes(anchor) ? [at] : []));
  if (found.length !== 1) return false;
  lines.splice(found[0] + behind, 0, ...text.split("\n"));
  return true;
}

await script(async () => {
  const isDry = process.argv.includes("--dry-run");
  const [kind, name, ...more] = process.argv.slice(2).filter((word) => word !== "--dry-run");
  const kinds = readdirSync(join(root, "scripts/new")).flatMap((file) => /^(\w+)\.mjs$/.exec(file)?.[1] ?? []);
  if (!kinds.includes(kind)) throw new Problem(`new: there are ${kinds.join(", ")}`);
  const fails = (what) => new Problem(`new-${kind}: ${what}`);
  if (!/^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$/.test(name ?? "") || more.length > 0) {
    throw fails(`a name in small letters with dashes is needed, as in npm run new-${kind} -- my-${kind}`);
  }
  const names = namesOf(name);
  if (RESERVED.split(" ").includes(names.snake)) throw fails(`${name} is a word of Rust or JavaScript`);
  const { files, edits, left, texts = {} } = (await import(`./new/${kind}.mjs`)).default(names);

  /** Lines of files as they are, none where there is no file, and as they will be. */
  const linesOf = (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8").split("\n") : []);
  const changed = new Map();
  for (const [path, how, anchor, text, taken] of edits) {
    const lines = changed.get(path) ?? linesOf(path);
    if (lines.some((line) => taken?.test(line) || (how === "sorted" && line === text))) throw fails(`${name} is taken: ${path} has it`);
    if (!HOW[how](lines, anchor, text)) throw fails(`${path} has not exactly one anchor ${anchor}: mend scripts/new/${kind}.mjs`);
    changed.set(path, lines);
  }
  for (const [path, template] of Object.entries(files)) {
    if (existsSync(join(root, path))) throw fails(`${name} is taken: ${path} is there`);
    const lines = linesOf(`scripts/new/${template}`).join("\n");
    changed.set(path, lines.replaceAll(/\{\{(\w+)\}\}/g, (_, key) => ({ ...names, ...texts })[key]).split("\n"));
  }

  const todo = [];
  for (const [path, lines] of changed) {
    if (isDry) console.log(path in files ? `new file ${path}` : path);
    const old = linesOf(path);
    lines.forEach((marked, at) => {
      const [mark, what] = MARK.exec(marked) ?? [""];
      lines[at] = marked.slice(0, marked.length - mark.length);
      if (what) todo.push(`${path}:${at + 1}: ${what}`);
      if (lines[at] === old[0]) old.shift();
      else {
        if (isDry) console.log(`${String(at + 1).padStart(5)} + ${lines[at]}`);
        // An edit of a line, where it comes no more.
        if (!lines.slice(at).includes(old[0])) old.shift();
      }
    });
  }
  for (const [path, anchor, what] of left) {
    const at = (changed.get(path) ?? linesOf(path)).findIndex((line) => line.includes(anchor));
    if (at < 0) throw fails(`${path} has no ${anchor}: mend scripts/new/${kind}.mjs`);
    todo.push(`${path}:${at + 1}: ${what}`);
  }
  if (isDry) return;
  for (const [path, lines] of changed) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), lines.join("\n"));
  }
  console.log(`${kind} ${name}: ${changed.size} files written. To fill in:\n${todo.join("\n")}`);
});

function namesOf(kebab) {
  const parts = kebab.split("-");
  const capital = (word) => word[0].toUpperCase() + word.slice(1);
  const Pascal = parts.map(capital).join("");
  return {
    kebab,
    snake: parts.join("_"),
    camel: Pascal[0].toLowerCase() + Pascal.slice(1),
    Pascal,
    words: parts.join(" "),
    Words: capital(parts.join(" ")),
    /** As a key of an object. */
    key: parts.length > 1 ? `"${kebab}"` : kebab,
  };
}
