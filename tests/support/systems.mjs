/** The items of the five systems that this library implements, and the page that says where each is. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Presets in the order of the systems; the items of each in the order of their numbers. */
const SYSTEMS = [
  [
    "offload",
    [
      "offload at the threshold",
      "what offloading reports",
      "an item that cannot be stored stays",
      "when a summary follows, and the cooldown",
      "the split, and what it moves for",
      "references are restored before a summary",
      "the request of a summary and its attempts",
      "the new history",
      "references that nothing names are retired, never deleted",
      "the result, and what a failure leaves",
      "a history that cannot be written",
      "options from the environment",
      "`/compact` and `/context`",
      "events",
      "histories that are broken when they arrive",
    ],
  ],
  [
    "react",
    [
      "a result that is too large is compressed in chunks",
      "the second level",
      "a chunk or a level whose call fails",
      "all large results above the limit's share",
      "thought, action and turns stay",
      "a failed call keeps its result",
      "ratios, lengths, switches; nothing left is an error",
      "a cheaper summariser for results",
      "stats and the exported trajectory",
      "what the logger is told",
      "by content, by reliance, never twice, cached, adaptive",
      "chunks at once, in order",
    ],
  ],
  [
    "layered",
    [
      "old results of some tools are cleared every turn",
      "the dynamic threshold",
      "the least savings",
      "the visible compaction and its summary",
      "the summary is in the conversation",
      "files that were read last are put back",
      "the user's own instructions",
      "large outputs",
      "the transcript, and what it restores",
      "sub-agents",
      "the estimator of the documents",
    ],
  ],
  [
    "factor3",
    [
      "at half of the budget",
      "one pass, and the summary's place",
      "what is never summarised; proposals of what to pin",
      "the session log and the monitoring block",
      "results become what matters, by the type of the tool",
      "what is kept as it is",
      "the emergency",
    ],
  ],
  [
    "checkpoint",
    [
      "the active context",
      "snapshots",
      "the session history and its records",
      "boundaries between the stores, at run time",
      "six stages; a failure leaves everything",
      "what is compressed and what stays",
      "levels",
      "ageing and merging",
      "tiers and budgets",
      "modes and levels in the prompt",
      "reliability of models",
      "limits of providers",
      "goals and markers",
      "the system prompt is the caller's",
      "nothing oversized leaves",
      "checks of a summary",
      "ten checkpoints and more",
      "older sessions",
    ],
  ],
];

/** Every item: its id, what it is about, and its preset. */
export const ITEMS = SYSTEMS.flatMap(([preset, titles], system) =>
  titles.map((title, item) => ({ id: `S${system + 1}.${item + 1}`, title, preset })),
);

/** Files below a folder that end in one of `endings`, as paths from the root. */
function files(folder, endings) {
  return readdirSync(join(root, folder))
    .filter((name) => !["node_modules", "dist", "target"].includes(name))
    .flatMap((name) => {
      const path = `${folder}/${name}`;
      if (statSync(join(root, path)).isDirectory()) return files(path, endings);
      return endings.some((ending) => path.endsWith(ending)) ? [path] : [];
    })
    .sort();
}

const isTest = (path) => /(^|\/)tests(\/|\.rs$)/.test(path) || path.endsWith(".test.mjs");

/** Names of the tests of a file. */
function names(path, source) {
  if (path.endsWith(".rs")) return Array.from(source.matchAll(/#\[test\][^{]*?\bfn (\w+)/g), ([, name]) => name);
  return Array.from(source.matchAll(/\btest\(\s*(["`])(.+?)\1,/g), ([, , name]) => name);
}

/** The source of a file up to its own unit tests. */
const withoutTests = (source) => source.split("#[cfg(test)]\nmod tests {", 1)[0];

/** The ids in a text, as `S1.5`; in the name of a Rust function they are `s1_5`. */
function ids(text) {
  return Array.from(text.matchAll(/(?<![A-Za-z0-9])S(\d)\.(\d+)|(?<![A-Za-z0-9])s(\d)_(\d+)(?![0-9])/g), (found) => {
    const [, a, b, c, d] = found;
    return `S${a ?? c}.${b ?? d}`;
  });
}

/** Of each id: the files of code that name it, and the tests, each as `[path, names]`. */
export function places() {
  const found = new Map(ITEMS.map(({ id }) => [id, { code: [], tests: [] }]));
  for (const path of files("crates", [".rs", ".md"]).concat(files("src", [".rs"]), files("js", [".ts"]))) {
    if (isTest(path) || path.startsWith("js/wasm/")) continue;
    for (const id of new Set(ids(withoutTests(read(path))))) found.get(id)?.code.push(path);
  }
  const own = ["crates", "tests", "www", "examples"].flatMap((folder) => files(folder, [".rs", ".mjs"]));
  for (const path of own.filter((path) => path.endsWith(".rs") || isTest(path))) {
    const of = new Map();
    for (const name of names(path, read(path))) {
      for (const id of new Set(ids(name))) of.set(id, [...(of.get(id) ?? []), name]);
    }
    for (const [id, told] of of) found.get(id)?.tests.push([path, told]);
  }
  return found;
}

export const read = (path) => readFileSync(join(root, path), "utf8");

/** `docs/systems.md`. */
export function page() {
  const found = places();
  const cell = (text) => text.replaceAll("|", "\\|");
  const row = ({ id, title }) => {
    const { code, tests } = found.get(id);
    const told = tests.map(([path, names]) => `\`${path}\`: ${names.map(cell).join("; ")}`);
    return `| ${id} | ${title} | ${code.map((path) => `\`${path}\``).join("<br>")} | ${told.join("<br>")} |`;
  };
  const tables = SYSTEMS.map(([preset]) => {
    const rows = ITEMS.filter((item) => item.preset === preset).map(row);
    return [`## \`${preset}\``, "", "| id | behaviour | code | tests |", "|---|---|---|---|", ...rows].join("\n");
  });
  return `${HEAD}\n${tables.join("\n\n")}\n`;
}

const HEAD = `# The five systems

The library implements five published designs for keeping a model inside its context window, each as a preset of one
engine. Their behaviours are numbered: S1.4 is the fourth of the first. Doc comments say which of them a piece of code
is for, and a test carries the ids of what it shows in its name. This page is made from both
(\`BLESS=1 node --test tests/node/systems-index.test.mjs\`), and a test keeps it true. \`docs/presets.md\` shows how the
presets differ.
`;
