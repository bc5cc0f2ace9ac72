/**
 * A process that uses a file store, with what it does as its first argument, or two of them as copies of each other: the
 * second argument is a directory, or a pair of them with `path.delimiter` between. Whatever is acknowledged is told at once,
 * a line each, so that who kills it knows.
 */

import { writeSync } from "node:fs";
import { delimiter } from "node:path";
import { mirrorStore, openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";

const [doing, directories, ...rest] = process.argv.slice(2);
const copies = directories.split(delimiter).map((directory) => fileStore(directory, { rewriteBytes: 20_000 }));
const store = copies.length > 1 ? mirrorStore(...copies) : copies[0];
const tell = (line) => writeSync(1, `${line}\n`);
const text = (name, at) => `${name} ${at} ${"words of a long conversation ".repeat(20)}`;

/** A session that is compacted every few messages. */
function open(id) {
  const summarize = async () => "## Current Status\nIt goes on.";
  return openSession({ id, store, preset: "offload", contextWindow: 8_000, summarize });
}

/** Whether it was; another process that compacts at the same time may be first. */
async function compacted(session) {
  try {
    return (await session.compact()).success;
  } catch (error) {
    if (error.code === "conflict") return "elsewhere";
    throw error;
  }
}

const programs = {
  /** Appends messages from number `from` on, `count` of them or for ever. */
  async append(id, name, from, count = Infinity) {
    const session = await open(id);
    for (let at = Number(from); at < Number(from) + Number(count); at++) {
      await session.append({ role: at % 2 ? "assistant" : "user", content: text(name, at) });
      tell(`appended ${at}`);
      if (at % 8 === 7) tell(`compacted ${await compacted(session)}`);
    }
    await session.close();
  },

  /** Counts a row up, `times` times. */
  async count(row, times) {
    const key = ["meta", row];
    for (let done = 0; done < Number(times); ) {
      const [bytes] = await store.read([key]);
      const version = bytes ? Number(new TextDecoder().decode(bytes)) : null;
      const puts = [[key, new TextEncoder().encode(String((version ?? 0) + 1))]];
      try {
        await store.commit({ expect: [{ key, version }], puts, deletes: [], durability: "strict" });
        tell(`counted ${++done}`);
      } catch (error) {
        if (error.code !== "conflict") throw error;
      }
    }
  },

  /** Tells the history of a session, and whether all of it is accounted for. */
  async history(id) {
    const session = await open(id);
    const messages = [];
    for await (const { content } of session.archive.history()) messages.push(content.split(" words")[0]);
    const fates = (await session.context.explain()).map(({ index }) => index);
    tell(JSON.stringify({ messages, fates, prepared: (await session.prepare()).messages.length }));
    await session.close();
  },

  /** Commits once and tells the error's code, as a user that may do less. */
  async refused(uid) {
    process.setuid(Number(uid));
    const read = await store.read([["meta", "a"]]).catch((error) => [error.code]);
    const puts = [[["meta", "b"], new Uint8Array(1)]];
    const commit = store.commit({ expect: [], puts, deletes: [], durability: "strict" });
    tell(JSON.stringify([typeof read[0] === "string" ? read[0] : [...read[0]], await commit.catch(({ code }) => code)]));
  },
};

await programs[doing](...rest);
await store.close();
