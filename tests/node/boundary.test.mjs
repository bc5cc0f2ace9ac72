/**
 * What crosses between JavaScript and the engine in a turn, in exact figures (P9, P20): `bench/snapshots/boundary.json`.
 * `BLESS=1 node --test tests/node/boundary.test.mjs` writes it anew.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

const snapshot = new URL("../../bench/snapshots/boundary.json", import.meta.url);

/** Of what crosses now. */
let tally = {};
const add = (what, count = 1) => (tally[what] = (tally[what] ?? 0) + count);
/** How deep calls of the engine are in each other. */
let depth = 0;

/** Exports that a call of the engine is made of. */
const OWN = /^__wbindgen_|^__externref_|^__wbg_.*_free$|^memory$/;
const FREES = /^__wbg_.*_free$/;

function watched(exports) {
  const entries = Object.entries(exports).map(([name, of]) => {
    if (typeof of !== "function") return [name, of];
    if (name === "__wbindgen_malloc") return [name, (bytes, align) => (add("bytes in", bytes), of(bytes, align))];
    if (OWN.test(name) && !FREES.test(name)) return [name, of];
    return [name, (...given) => {
      if (depth === 0) add("crossings");
      depth++;
      try {
        return of(...given);
      } finally {
        depth--;
      }
    }];
  });
  return Object.fromEntries(entries);
}

function listening(imports) {
  const of = Object.entries(imports).map(([module, functions]) => {
    const entries = Object.entries(functions).map(([name, of]) => {
      if (typeof of !== "function") return [name, of];
      const copies = /_new_from_slice_|_string_new|^__wbindgen_generic_/.test(name);
      return [name, (...given) => {
        add("imports");
        if (/_new_|_of_/.test(name)) add("objects");
        if (copies && given.length === 2) add("bytes out", given[1]);
        const before = depth;
        // A listener that calls the engine crosses once more.
        if (/_call_/.test(name)) depth = 0;
        try {
          return of(...given);
        } finally {
          depth = before;
        }
      }];
    });
    return [module, Object.fromEntries(entries)];
  });
  return Object.fromEntries(of);
}

const { Instance } = WebAssembly;
WebAssembly.Instance = function (module, imports = {}) {
  const isFirst = WebAssembly.Module.exports(module).some(({ name }) => name === "version");
  if (!isFirst) return new Instance(module, imports);
  const { exports } = new Instance(module, listening(imports));
  return { exports: watched(exports) };
};

const { memoryStore, openSession } = await import("context-compactor");

/** A store that answers later. */
function later() {
  const memory = memoryStore();
  const wait = (name) => async (...given) => memory[name](...given);
  return { caps: memory.caps, read: wait("read"), scan: wait("scan"), commit: wait("commit") };
}

function turn(nth) {
  const id = `call_${String(nth).padStart(6, "0")}`;
  const call = { id, type: "function", function: { name: "read", arguments: JSON.stringify({ path: `src/file_${nth}.rs` }) } };
  return [
    [{ role: "user", content: `Question ${nth}: what does src/file_${nth}.rs do?` }],
    [
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: id, content: `src/file_${nth}.rs: fn run_${nth}() -> u32\n`.repeat(16) },
    ],
    [{ role: "assistant", content: `It runs job ${nth}.` }],
  ];
}

const ways = {
  async "five calls"(session, [question, work, answer]) {
    await session.append(...question);
    await session.prepare();
    await session.append(...work);
    await session.prepare();
    await session.append(...answer);
  },
  async "three calls"(session, [question, work, answer]) {
    await session.prepare({ append: question });
    await session.prepare({ append: work });
    await session.append(...answer);
  },
};

test("P9 what crosses in a turn is what is written", async () => {
  const found = {};
  for (const [kind, store] of [["a store that answers at once", memoryStore], ["a store that answers later", later]]) {
    for (const [name, way] of Object.entries(ways)) {
      const at = 1_700_000_000_000;
      let ids = 0;
      const runtime = { now: () => at, id: () => `id-${String(++ids).padStart(8, "0")}` };
      const session = await openSession({ id: "s", store: store(), contextWindow: 1_000_000, advanced: { runtime } });
      for (let nth = 0; nth < 25; nth++) {
        tally = {};
        await way(session, turn(100_000 + nth));
      }
      const sorted = Object.entries(tally).sort(([a], [b]) => (a < b ? -1 : 1));
      found[`${name}, ${kind}`] = Object.fromEntries(sorted);
      await session.close();
    }
  }
  const crossings = (name) => found[name].crossings;
  assert.equal(crossings("five calls, a store that answers at once"), 5);
  assert.equal(crossings("three calls, a store that answers at once"), 3);
  assert.equal(crossings("three calls, a store that answers later"), 6);
  const lines = Object.entries(found).map(([name, of]) => `  ${JSON.stringify(name)}: ${JSON.stringify(of)}`);
  const text = `{\n${lines.join(",\n")}\n}\n`;
  if (process.env.BLESS) writeFileSync(snapshot, text);
  assert.equal(text, readFileSync(snapshot, "utf8"), "bench/snapshots/boundary.json says otherwise; run with BLESS=1 and review the change");
});
