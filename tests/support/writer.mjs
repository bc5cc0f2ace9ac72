/**
 * What writes to a session until it is killed, in a page or in a process, and what is read of the session afterwards. Uses
 * nothing but the package and standard JavaScript. Whatever was acknowledged is told to the test, which outlives it.
 */

import { generator } from "./random.mjs";

/** Context messages that a compaction keeps. */
const PRESERVED = 5;

/** Every `prepare` offloads all results that there are, and summarises nothing as long as there was one. */
export const eager = (call) => ({
  compactAt: { tokens: 1_000 },
  keep: { messages: PRESERVED },
  advanced: { offload: { scanFraction: 1 }, minOffloadGain: 1 },
  summarize: { call, attempts: 1, fallback: "none" },
});

/**
 * The messages of one call of `append`, which its name alone decides: so whoever reads them knows what they must be.
 * `name` is `session/writer/n`. Every third is a message alone, the others are a call of a tool with its result. In sessions
 * `big…` some results are more than a row of every store takes.
 */
export function messagesOf(name) {
  const random = generator(hash(name));
  const said = { role: "user", content: `请看 [${name}] 👩‍👩‍👧 ${"question ".repeat(random(20))}` };
  if (random(3) === 0) return [said];
  const id = `call_${name.replaceAll(/\W/g, "_")}`;
  const call = { id, type: "function", function: { name: "read_file", arguments: `{"path":"src/${id}.rs"}` } };
  const line = `line of ${name}: 数据 data 😀 \u0000 שלום ${random(1_000_000)}\n`;
  const lines = 30 + random(60);
  const isBig = name.startsWith("big") && random(8) === 0;
  return [
    said,
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: line.repeat(isBig ? 100 * lines : lines) },
    { role: "assistant", content: `[${name}] is fine.` },
  ];
}

function hash(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/**
 * Appends and compacts for ever; resolves only when it was asked to stop. `library` is the package, `store()` opens the
 * store, `tell(path, body)` posts to the test and returns its answer. `who` makes the names of its calls its own.
 *
 * Posts `/acked`, `/refused` (with a code), `/asked` (for a summary), `/compacted`, `/kept` (a compaction that did not
 * take place) and `/loss` (what the session said that the platform took); the answer says how many calls were acknowledged so far, of all writers, and whether to stop.
 */
export async function write({ library, store, tell, session: id, who, seed }) {
  const random = generator(seed);
  let conflicts = 0;
  let marks = 0;
  let mark, abort;
  const counted = () => {
    const opened = store();
    const commit = async (batch) => {
      try {
        return await opened.commit(batch);
      } catch (error) {
        if (error.code === "conflict") conflicts++;
        throw error;
      }
    };
    return { ...opened, commit };
  };
  const summarize = async (request) => {
    mark = `${id}/${who}/mark ${marks++};`;
    // Appends come between while the summary is written.
    await tell("/asked", { mark });
    if (random(5) === 0) {
      abort.abort();
      throw new Error("stopped by the user");
    }
    return `## Current Status\n${mark}\n\n## Key Decisions\n${request.facts.map(({ text }) => `- ${text}`).join("\n")}`;
  };
  const open = async (more) => {
    const session = await library.openSession({ id, store: counted(), ...eager(summarize), ...more });
    session.on("data-loss", (loss) => tell("/loss", loss));
    return session;
  };

  let session = await patiently(open, tell);
  let answer = await tell("/moment");
  for (let n = 0; !answer.stop; ) {
    let lost = false;
    const code = (error) => {
      const code = library.CompactionError.isInstance(error) ? error.code : String(error?.stack ?? error);
      lost ||= !["conflict", "aborted"].includes(code);
      return code;
    };
    const append = async () => {
      const call = `${id}/${who}/${n++}`;
      const { acked: since } = answer;
      // Whoever cannot tell the test does not go on: so what is told is no part of what is tried.
      const refused = await session.append(...messagesOf(call)).then(() => undefined, code);
      if (refused) answer = await tell("/refused", { call, code: refused, conflicts });
      else answer = await tell("/acked", { call, since, conflicts });
    };
    const compact = async () => {
      mark = undefined;
      abort = new AbortController();
      const compacted = await session.compact({ signal: abort.signal }).catch((error) => ({ refused: code(error) }));
      const { success, stored, error, ledger, refused } = compacted;
      if (error) code(error);
      const checkpoint = ledger?.find(({ checkpoint }) => checkpoint)?.checkpoint;
      if (refused) answer = await tell("/kept", { mark, code: refused, conflicts });
      // On a full disk it is in memory alone.
      else if (success && stored && mark) answer = await tell("/compacted", { mark, checkpoint, conflicts });
      else if (mark) answer = await tell("/kept", { mark, code: error?.code ?? "none", conflicts });
    };
    switch (random(9)) {
      case 0:
        // While the summary is written, the session goes on.
        await Promise.all([compact(), append()]);
        break;
      case 1:
        await compact();
        break;
      case 2:
      case 3:
        mark = undefined;
        abort = new AbortController();
        await session.prepare({ signal: abort.signal }).catch(code);
        break;
      default:
        await append();
    }
    // A store that was lost under the session: the app opens both again.
    if (lost) session = await patiently(open, tell);
  }
  await session.close();
}

/** Codes of a store that may be there again in a moment. */
const PASSING = ["store_unavailable", "indeterminate", "conflict", "quota_exceeded"];

/** Opens a session as soon as the store can be reached again; without what the platform took, which is told. */
async function patiently(open, tell) {
  for (const until = Date.now() + 60_000; ; ) {
    try {
      return await open();
    } catch (error) {
      if (error.code === "data_loss") {
        await tell("/loss", { kind: "session", reason: error.message });
        return open({ acceptDataLoss: true });
      }
      if (Date.now() > until || !PASSING.includes(error.code)) throw error;
      await tell("/moment");
    }
  }
}

/** All that an app can see of the session, and that it can still be written to. */
export async function read({ library, store, session: id, after }) {
  const losses = [];
  // Nothing leaves the context here, however large the results are and whatever was paid for them so far.
  const options = { preset: "offload", contextWindow: 100_000_000, compactAt: { fraction: 1 } };
  const open = (more) => library.openSession({ id, store: store(), ...options, ...more });
  const session = await open().catch((error) => {
    if (error.code !== "data_loss") throw error;
    losses.push({ kind: "session", reason: error.message });
    return open({ acceptDataLoss: true });
  });
  session.on("data-loss", (loss) => losses.push(loss));
  try {
    const verified = await session.archive.verify();
    await session.append(...messagesOf(after));
    const { messages } = await session.prepare();
    const ledger = await session.context.explain();
    const texts = {};
    for (const ref of ledger.flatMap(({ ref, refs }) => refs ?? ref ?? [])) {
      texts[ref] = await session.recall.read(ref).catch((error) => ({ error: String(error) }));
    }
    const history = [];
    for await (const message of session.archive.history()) history.push(message);
    const checkpoints = (await session.archive.checkpoints()).map(({ id }) => id);
    // Every summary that was ever committed, also those that a later one stands for.
    const archive = await new Response(session.archive.jsonl()).text();
    const marks = archive.match(new RegExp(`${id}/\\w+/mark \\d+;`, "g")) ?? [];
    return { verified, messages, ledger, texts, history, checkpoints, marks: [...new Set(marks)], losses };
  } finally {
    await session.close();
  }
}
