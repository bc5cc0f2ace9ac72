/** Names of a text: what must be written to the letter to mean it. The kinds are those of the evaluator's metric of recall. */

/** @typedef {import("context-compactor").Message} Message */
/** @typedef {{ name: string, at: number, end: number }} Place */

// The number that tools print before a line, an escape of code, a URL, a word with the marks that names have.
const TOKENS = /^ *\d+[→\t]|\\[^]|([a-z\d+]{2,12}:\/\/[^\s"'`<>|\\(){}[\],]*)|([\w\-./@#~:+%$]+)/gim;
const ENDINGS = "rs|tsx?|jsx?|mjs|cjs|py|go|java|kt|cc|cpp|hpp|cs|rb|php|swift|sh|sql|mdx?|txt|jsonl?|toml|ya?ml|xml|html|css|csv|lock|cfg|pdf|png|svg|ipynb|proto";
const FILE = new RegExp(`^(?=.*[a-z\\d].*\\.)[\\w.-]+\\.(?:${ENDINGS})$`, "i");
const SYSTEM = /^(?:ENOENT|EACCES|EPERM|EEXIST|EPIPE|EINVAL|ENOTDIR|ERESOLVE|SIGSEGV|SIGKILL|ERR_\w{3,})$/;
const PRODUCTS = /^(?:GitHub|GitLab|JavaScript|TypeScript|OpenAI|PostgreSQL)$/;

/** Every name of a text, in order. @param {string} text @returns {Place[]} */
export function names(text) {
  /** @type {Place[]} */
  const found = [];
  for (const { 1: url, 2: word, index } of text.matchAll(TOKENS)) {
    if (url) add(found, url.replace(/[.,;:!?*_]+$/, ""), index);
    else if (word && word.length <= 300) classify(word, index, found);
  }
  return found;
}

function add(/** @type {Place[]} */ found, /** @type {string} */ name, /** @type {number} */ at) {
  found.push({ name, at, end: at + name.length });
}

/** @param {string} token @param {number} from @param {Place[]} found */
function classify(token, from, found) {
  const at = from + /^[:+%]*/.exec(token)[0].length;
  const word = token.slice(at - from).replace(/[.:\-+@/#$~]+$/, "");
  if (word.length < 3) return;
  if (/^[^@]+@.*\.[a-z]{2,}$/i.test(word)) return add(found, word, at);
  if (word.startsWith("--")) {
    if (/^--[a-z]./i.test(word)) add(found, word, at);
    return;
  }
  const path = /^[^:]*/.exec(word)[0];
  if (word.includes("/")) {
    const name = pathName(path);
    if (name) {
      found.push({ name, at, end: at + path.length });
      // `src/main.rs:12:func`: the line says nothing, what stands on it may.
      const rest = word.slice(path.length).replace(/^[:\d]+/, "");
      if (rest) classify(rest, at + word.length - rest.length, found);
      return;
    }
    eachPart(word, "/", at, (part, place) => classify(part, place, found));
  } else if (FILE.test(path)) add(found, path, at);
  else if (isNumber(word)) add(found, word, at);
  else {
    eachPart(word, /[:.]/, at, (part, place) => {
      const name = part.replace(/^[$@~%\-+]+|[$@~%\-+]+$/g, "");
      if (isError(name) || isId(name) || isIdentifier(name)) add(found, name, place);
    });
  }
}

function eachPart(/** @type {string} */ word, /** @type {string | RegExp} */ by, /** @type {number} */ at, /** @type {(part: string, at: number) => void} */ take) {
  for (const part of word.split(by)) {
    take(part, at);
    at += part.length + 1;
  }
}

/** The last two components of a path. @param {string} word */
function pathName(word) {
  const path = word.replace(/\/+$/, "");
  if (path.replace(/[^a-z]/gi, "").length < 3 || /\/\/|@|^\/dev\/null$/.test(path)) return;
  const parts = path.split("/");
  const isTyped = /\.(?=\d*[a-z])[a-z\d]{1,5}$/i.test(parts.at(-1)) && parts.length > 1;
  // `/name` alone is a command, a route or markup.
  if (parts.filter(Boolean).length > 1 && (parts.length > 2 || isTyped || /^\.{0,2}\/|^~\//.test(path))) return parts.slice(-2).join("/").replace(/^[/~]+|^\.\//, "");
}

/** `1.2.3`, `v2`, `$12.50`, `15%`, `2026-02-01`; small bare integers say nothing. @param {string} word */
function isNumber(word) {
  const core = word.replace(/^[v$\-~]/, "");
  if (!/^\d[\d.:-]*(?:[a-z%]{0,3})$/i.test(core) || core.length > 32) return false;
  return core.replace(/\D/g, "").length >= 3 || /[a-z%]$/i.test(core) || /^[v$]/.test(word) || core.includes(".");
}

function isError(/** @type {string} */ word) {
  return /^(?:E|TS)\d{4}$|^[A-Z][A-Za-z\d]+(?:Error|Exception)$/.test(word) || SYSTEM.test(word);
}

/** A hash, a UUID, a ticket, an order or booking number. @param {string} word */
function isId(word) {
  if (!/^#*[A-Za-z\d-]{3,64}$/.test(word) || !/\d/.test(word)) return false;
  if (word.startsWith("#")) return true;
  const digits = word.replace(/\D/g, "").length;
  if (/^[\da-f-]{7,}$/i.test(word) && digits >= 2 && /[a-f]/i.test(word)) return true;
  return /^[A-Z]{2,10}-\d+$/.test(word) || (/^[A-Z\d]{5,}$/.test(word) && digits >= 2 && /[A-Z]/.test(word));
}

/** A name that nobody writes by chance: `snake_case`, `camelCase`, `PascalCase`, `CONST_CASE`. @param {string} word */
function isIdentifier(word) {
  if (!/^[A-Za-z_]\w{3,79}$/.test(word) || PRODUCTS.test(word)) return false;
  return /[a-z][A-Z]|[^_]_+[^_]/.test(word) && word.replace(/[^A-Za-z]/g, "").length >= 3;
}
