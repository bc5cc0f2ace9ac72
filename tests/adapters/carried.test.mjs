/** `compact(messages, { state })` in the middleware of an app that opens no session, with its state in PostgreSQL (E4). */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, promisify } from "node:util";
import pg from "pg";
import { DONE, fileText, holds, provider, SUMMARIES, TASK } from "../support/agents.mjs";
import { AI_SDKS } from "../support/ai-sdks.mjs";
import { majorsOf } from "../support/majors.mjs";
import { missing, startPostgres } from "../support/servers.mjs";
import { answer, readChat, TABLE } from "../support/stateless.mjs";

/** What makes room, and how many summaries the agent's model writes for it at least. */
const { background: _, ...ALONE } = SUMMARIES;
const WAYS = {
  "old results leave": { least: 0 },
  "summaries of a model alone": { least: 2, ...ALONE },
  "the built-in summarizer alone": { least: 0, ...ALONE, summarize: "extractive" },
};

/** A conversation in which so many files were read, in JSON. */
function reading(files) {
  const exchange = (nth) => {
    const call = { toolCallId: `call_${nth}`, toolName: "read_file" };
    const output = { type: "text", value: fileText(nth) };
    return [
      { role: "assistant", content: [{ type: "tool-call", ...call, input: { nth } }] },
      { role: "tool", content: [{ type: "tool-result", ...call, output }] },
    ];
  };
  return [{ role: "user", content: TASK }, ...Array.from({ length: files }, (_, nth) => exchange(nth)).flat(), { role: "assistant", content: "So far, so good." }];
}

const plain = (value) => JSON.parse(JSON.stringify(value));

const program = fileURLToPath(new URL("../support/stateless.mjs", import.meta.url));

describe("E4: the state in a jsonb column", { skip: missing("postgres") }, () => {
  let database, pool;
  before(async () => {
    database = await startPostgres();
    pool = new pg.Pool({ ...database.at, max: 4 });
    pool.on("error", () => {});
    await pool.query(TABLE);
  });
  after(async () => {
    await pool.end();
    await database.stop();
  });

  /** The same in another process, which ends. */
  async function elsewhere(asked) {
    const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify({ at: database.at, ...asked })]);
    return stdout.trim();
  }

  async function begin(id, messages = []) {
    await pool.query("INSERT INTO chats (id, messages) VALUES ($1, $2)", [id, JSON.stringify(messages)]);
  }

  for (const [major] of majorsOf(AI_SDKS)) {
    for (const [name, { least, ...more }] of Object.entries(WAYS)) {
      test(`E4: AI SDK ${major}, ${name}: 61 calls, half of them in another process, and what left the prompt is read again`, async (context) => {
        const search = (nth) => (nth === 62 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
        const server = await provider(context, { script: search });
        const id = `${major} ${name}`;
        await begin(id);
        const asked = { major, url: server.url, key: "a", id, ...more };
        assert.equal(await elsewhere({ ...asked, text: TASK, steps: 30 }), "");
        assert.equal(server.figures("a").calls, 30);
        assert.equal(await answer(pool, asked), DONE);
        holds(server.figures("a"));
        const { changes, bytes } = await readChat(pool, id);
        const { largest, summaries } = server.figures("a");
        context.diagnostic(`${changes} changes, ${summaries} summaries, largest prompt ${largest}, ${bytes} bytes`);
        assert.ok(changes >= 2 && changes <= 10 && summaries >= least, `${changes} changes, ${summaries} summaries`);
        assert.ok(bytes <= 8_192, `${bytes} bytes`);
        assert.equal(await answer(pool, { ...asked, text: "What was in module 3?" }), DONE);
        const found = server.requests.at(-1).body.messages.find(({ tool_call_id: id }) => id === "r1");
        assert.match(found.content, /src\/module3\/part5\.ts/);
        assert.equal((await readChat(pool, id)).messages.length, 122 + 4);
      });
    }

    test(`E4: AI SDK ${major}: two requests of one row at once: the last one wins, and both are right`, async (context) => {
      const server = await provider(context, { files: 0, summaryMs: 200 });
      const id = `${major} at once`;
      await begin(id, reading(18));
      const written = [];
      const watched = {
        query(text, values) {
          if (text.startsWith("UPDATE chats SET compaction")) written.push(plain(values[1]));
          return pool.query(text, values);
        },
      };
      const ask = (key, text) => answer(watched, { major, url: server.url, key, id, text, ...ALONE });
      assert.deepEqual(await Promise.all([ask("a", "Is a.ts new?"), ask("b", "Is b.ts new?")]), [DONE, DONE]);
      for (const key of ["a", "b"]) {
        holds(server.figures(key), { total: 1 });
        assert.equal(server.figures(key).summaries, 1);
        const { body } = server.requests.find((request) => request.key === key && request.kind === "agent");
        assert.equal(body.messages.at(-1).content, `Is ${key}.ts new?`);
      }
      assert.equal(written.length, 2);
      assert.notDeepEqual(...written);
      const { messages, compaction } = await readChat(pool, id);
      assert.ok(written.some((state) => isDeepStrictEqual(state, compaction)));
      // Whichever state the messages of whichever request meet, they go on from it.
      for (const [nth, state] of written.slice().entries()) {
        await pool.query("UPDATE chats SET messages = $2, compaction = $3 WHERE id = $1", [id, JSON.stringify(messages), state]);
        assert.equal(await ask(`after ${nth}`, "And now?"), DONE);
        const { summaries, ...figures } = server.figures(`after ${nth}`);
        holds({ summaries, ...figures }, { total: 1 });
        assert.equal(summaries, 0);
        const sent = server.requests.at(-1).body.messages;
        assert.ok(sent.length < 20 && JSON.stringify(sent).includes("File 9 mentions an error"), `${sent.length} messages`);
        assert.equal(sent.at(-1).content, "And now?");
      }
    });
  }
});
