/**
 * Texts of every kind that messages hold, as many as are asked for, the same ones each time: files of the installed
 * packages, translations (of the TypeScript compiler) in 13 languages, and what no package has, made from these.
 *
 * Classes by name; a class is a function that returns a text of about `length` characters.
 */

import { readFileSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { generator } from "./random.mjs";

export { generator };

const root = fileURLToPath(new URL("../../", import.meta.url));
const modules = join(root, "node_modules");

/** Packages whose files are read: those with much text of their own kind. */
const packages = [
  "@anthropic-ai/sdk", "@google/genai", "ai7", "ajv", "esbuild", "fast-check", "highlight.js", "marked",
  "miniflare", "puppeteer-core", "rolldown", "typescript", "undici", "vite", "ws", "yargs", "zod",
];

/** The most characters of one file that are taken. */
const PER_FILE = 400_000;
/** The most characters of one kind. */
const PER_KIND = 6_000_000;

const kinds = {
  markdown: [packages, /\.md$/],
  typescript: [packages, /\.d\.ts$/],
  javascript: [packages, /(?<!min)\.(mjs|cjs|js)$/],
  json: [packages, /\.json$/],
  css: [["highlight.js", "miniflare", "youch"], /\.css$/],
  html: [["bignumber.js", "miniflare", "../www"], /\.html$/],
  rust: [["../crates", "../src", "../xtask"], /\.rs$/],
  python: [["../bench"], /\.py$/],
};

function* filesOf(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules" && entry.name !== "target") yield* filesOf(path);
    else if (entry.isFile()) yield path;
  }
}

function kind(name) {
  const [folders, pattern] = kinds[name];
  let text = "";
  for (const folder of folders) {
    for (const path of filesOf(join(modules, folder))) {
      if (text.length > PER_KIND) return text;
      if (pattern.test(path) && statSync(path).size < 4 * PER_FILE) text += readFileSync(path, "utf8").slice(0, PER_FILE);
    }
  }
  return text;
}

/** The compiler's messages in a language, as prose. */
function language(name) {
  const path = join(modules, "typescript/lib", name, "diagnosticMessages.generated.json");
  return Object.values(JSON.parse(readFileSync(path, "utf8"))).join(" ");
}

const languages = {
  chinese: "zh-cn",
  chinese_traditional: "zh-tw",
  czech: "cs",
  french: "fr",
  german: "de",
  italian: "it",
  japanese: "ja",
  korean: "ko",
  polish: "pl",
  portuguese: "pt-br",
  russian: "ru",
  spanish: "es",
  turkish: "tr",
};

const kept = new Map();
function source(name, make) {
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name);
}

function slice(text, random, length) {
  const start = random(Math.max(1, text.length - length));
  return text.slice(start, start + length);
}

const fromFile = (name) => (random, length) => slice(source(name, () => kind(name)), random, length);
const translated = (name) => (random, length) => slice(source(name, () => language(languages[name])), random, length);

const words = () => source("words", () => [...new Set(source("markdown", () => kind("markdown")).match(/[A-Za-z]{2,12}/g))]);
const word = (random) => words()[random(words().length)];
const digits = (random, count) => Array.from({ length: count }, () => random(10)).join("");
const hex = (random, count) => Array.from({ length: count }, () => random(16).toString(16)).join("");
const bytes = (random, count) => Buffer.from(Array.from({ length: count }, () => random(256)));
const until = (make) => (random, length) => {
  let text = "";
  while (text.length < length) text += make(random);
  return text.slice(0, length);
};
const paths = () => source("paths", () => [...filesOf(join(modules, "typescript"))].map((path) => relative(root, path)));

export const classes = {
  ...Object.fromEntries(Object.keys(kinds).map((name) => [name, fromFile(name)])),
  ...Object.fromEntries(Object.keys(languages).map((name) => [name, translated(name)])),
  english: (random, length) => slice(source("english", () => kind("markdown").replace(/[^A-Za-z0-9 .,:;'\n]+/g, " ")), random, length),
  short_chat: until((random) => `${["Can you", "Please", "Why doesn't", "I'll", "Let's"][random(5)]} ${word(random)} ${word(random)}? `),
  minified: (random, length) => slice(source("minified", () => kind("javascript").replace(/\s*\n\s*/g, "")), random, length),
  json_pretty: (random, length) =>
    slice(source("json_pretty", () => JSON.stringify({ all: kind("json").split("\n") }, null, 2)), random, length),
  tool_results: until((random) => `{"id":"call_${hex(random, 12)}","name":"${word(random)}_${word(random)}","ok":true,"ms":${random(9000)}},`),
  shell: until((random) => `-rw-r--r-- 1 root root ${String(random(99999)).padStart(7)} Mar ${random(28) + 1} 0${random(10)}:${random(6)}${random(10)} ${paths()[random(paths().length)]}\n`),
  logs: until((random) => `2026-0${random(9) + 1}-1${random(10)}T0${random(10)}:${random(6)}0:27.${digits(random, 3)}Z ${["INFO ", "WARN ", "ERROR"][random(3)]} ${word(random)}: ${word(random)} ${word(random)} id=${hex(random, 8)} ms=${random(900)}\n`),
  diff: until((random) => `${[" ", "+", "-"][random(3)]}  ${slice(source("typescript", () => kind("typescript")), random, 20 + random(60)).replaceAll("\n", " ")}\n`),
  base64: until((random) => bytes(random, 57).toString("base64") + (random(4) === 0 ? "\n" : "")),
  hex_uuid: until((random) => (random(2) ? `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-a${hex(random, 3)}-${hex(random, 12)}\n` : `${hex(random, 32)} `)),
  csv: until((random) => `${random(99999)},${word(random)},${random(999)}.${digits(random, 2)},2026-01-${digits(random, 2)},${random(2) === 0}\n`),
  emoji: until((random) => `${word(random)} ${source("emoji", emoji)[random(source("emoji", emoji).length)]}${random(3) ? " " : "\n"}`),
};

function emoji() {
  const all = Array.from({ length: 0x1f6d0 - 0x1f300 }, (_, nth) => String.fromCodePoint(0x1f300 + nth));
  return [...all, "❤️", "👩‍💻", "👍🏽", "🏳️‍🌈", "🇫🇷", "1️⃣"];
}

/** `count` texts, a class after the other, with lengths as messages have them: 20 to 6,000 characters. */
export function* samples(count, seed = 1) {
  const random = generator(seed);
  const names = Object.keys(classes);
  for (let nth = 0; nth < count; nth++) {
    const name = names[nth % names.length];
    const length = name === "short_chat" ? 20 + random(280) : Math.round(100 * 60 ** (random(1_000_000) / 1_000_000));
    // A slice may begin or end within a pair.
    yield { name, text: classes[name](random, length).replace(/\p{Surrogate}/gu, "") };
  }
}
