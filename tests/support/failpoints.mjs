/**
 * Every operation of a session with a fault at every call of its store: the process dies before it or after it, it fails and
 * was not taken, it was taken and the answer is lost. Then the session is opened again and held against what was
 * acknowledged. Runs in Node and in pages, on any store.
 */

import { check, Told } from "./kills-check.mjs";
import { eager, messagesOf, read } from "./writer.mjs";

/** The session that faults happen to, and the one that is begun from it. */
const ID = "session";
const OTHER = "other";
/** Steps after which messages may have left the context, and those that begin another session. */
const LEAVING = ["restore", "rewind", "undo"];
const BEGINNING = ["fork", "import"];

/** With these, a store refuses a batch of which nothing was written. */
const REFUSALS = ["quota_exceeded", "store_unavailable", "conflict", "too_large"];

/** How the nth call of a store goes wrong. */
const FAULTS = ["dies before", "dies after", "is refused", "is not answered"];
/** Those that say nothing of a read, which leaves nothing behind: dead after it is dead before it, and no answer is a refusal. */
const AFTER = ["dies after", "is not answered"];

const identity = (store) => store;
const METHODS = ["read", "scan", "commit"];

/** Stands for the process that is gone: nothing that it began ever ends. */
const DIED = Symbol("died");

/** A store whose nth call of those `methods` goes wrong, from when it is armed. */
function faulty(store, library, methods) {
  let left = Infinity;
  let fault, code, gone;
  const died = new Promise((resolve) => (gone = () => resolve(DIED)));
  let dead = false;
  const through = (method) => async (...values) => {
    if (dead) return new Promise(() => {});
    if (!methods.includes(method) || left-- !== 0) return store[method](...values);
    if (fault === "is refused") {
      throw new library.CompactionError(method === "commit" ? code : "store_unavailable", "injected");
    }
    const die = () => {
      dead = true;
      gone();
      return new Promise(() => {});
    };
    if (fault === "dies before") return die();
    await store[method](...values);
    if (fault === "dies after") return die();
    throw new library.CompactionError("indeterminate", "injected");
  };
  return {
    store: { caps: store.caps, read: through("read"), scan: through("scan"), commit: through("commit") },
    died,
    arm(nth, how, refusal) {
      [left, fault, code] = [nth, how, refusal];
    },
    /** The call was reached. */
    fired: () => left < 0,
  };
}

/** A summariser that writes the next mark of `told`. */
function summariser(told) {
  return async ({ facts }) => {
    const mark = `${ID}/f/mark ${told.marks.size};`;
    told.marks.set(mark, "asked");
    return `## Current Status\n${mark}\n\n## Key Decisions\n${facts.map(({ text }) => `- ${text}`).join("\n")}`;
  };
}

/** What is done by the process that the fault happens to. */
export const STEPS = {
  async open({ open }) {
    await open();
  },
  async append({ open, told }) {
    await append(await open(), told);
  },
  async prepare({ open }) {
    await (await open()).prepare();
  },
  async compact({ open, told }) {
    compacted(await (await open()).compact(), told);
  },
  async snapshot({ open }) {
    await (await open()).snapshots.take();
  },
  async restore({ open }) {
    const session = await open();
    const [snapshot] = await session.snapshots.list();
    if (snapshot) await session.snapshots.restore(snapshot.id);
  },
  async rewind({ open }) {
    const session = await open();
    await session.snapshots.rewind((await session.context.explain()).length);
  },
  async undo({ open }) {
    await (await open()).snapshots.undo();
  },
  async "set goal"({ open }) {
    const lists = { checkpoints: [], decisions: [], artifacts: [] };
    await (await open()).goal.set({ id: "g", description: "Ship it", priority: "high", status: "active", ...lists });
  },
  async fork({ open }) {
    await (await open()).fork({ id: OTHER });
  },
  async export({ open }) {
    const reader = (await open()).archive.jsonl().getReader();
    while (!(await reader.read()).done);
  },
  async import({ archive, library, store }) {
    await library.importSession(archive, { id: OTHER, store });
  },
  async delete({ open }) {
    await (await open()).close({ delete: true });
  },
};

/**
 * Runs all steps. `library` is the package; `make()` makes an empty place, which `open()` opens anew each time and
 * `remove()` removes; `protocol(store)` may put a protocol of its own in front of it; `methods` are those whose calls go
 * wrong. Returns counts, and the problems of the first faults that led to any, by step, call and fault.
 */
export async function failpoints({ library, make, protocol = identity, steps = Object.keys(STEPS), methods = METHODS }) {
  const counts = { crashes: 0, failures: 0 };
  const problems = [];
  const before = await prepared(library);
  const everyCall = async (step, fault) => {
    let reached = true;
    const those = AFTER.includes(fault) ? ["commit"] : methods;
    for (let nth = 0; reached && problems.length === 0; nth++) {
      const found = await failpoint({ library, make, before, protocol, methods: those, step, fault, nth });
      reached = found.fired;
      counts[fault.startsWith("dies") ? "crashes" : "failures"] += reached ? 1 : 0;
      problems.push(...found.problems.map((problem) => `${step}, call ${nth + 1} ${fault}: ${problem}`));
    }
  };
  for (const step of steps) {
    // Side by side: much of the time is spent waiting, for the next attempt or for the disk.
    await Promise.all(FAULTS.map((fault) => everyCall(step, fault)));
    if (problems.length > 0) break;
  }
  return { counts, problems };
}

/** A session with all that there can be: the batches that made it, what was told of it, its archive. */
async function prepared(library) {
  const batches = [];
  const memory = library.memoryStore();
  const commit = (batch) => {
    memory.commit(batch);
    batches.push({ ...batch, puts: batch.puts.map(([key, value]) => [key, value.slice()]) });
  };
  const told = new Told();
  const options = { id: ID, ...eager(summariser(told)) };
  const session = await library.openSession({ ...options, store: { ...memory, commit } });
  for (let nth = 0; nth < 4; nth++) await append(session, told);
  await session.prepare();
  await session.snapshots.take();
  compacted(await session.compact(), told);
  for (let nth = 0; nth < 3; nth++) await append(session, told);
  const archive = await new Response(session.archive.jsonl()).text();
  await session.close();
  const known = () => {
    const copy = new Told();
    copy.acked = [...told.acked];
    copy.marks = new Map(told.marks);
    copy.checkpoints = [...told.checkpoints];
    return copy;
  };
  return { batches, known, archive };
}

async function append(session, told) {
  const call = `${ID}/f/${told.acked.length}`;
  const since = told.acked.length;
  try {
    await session.append(...messagesOf(call));
    told.acked.push({ call, since });
  } catch (error) {
    told.refused.set(call, error.code);
    throw error;
  }
}

/** What the store had no room for is in memory alone, and says so. */
function compacted({ success, stored, ledger }, told) {
  if (!success || stored === false) return;
  told.marks.set([...told.marks.keys()].at(-1), "compacted");
  told.checkpoints.push(ledger.find(({ checkpoint }) => checkpoint).checkpoint);
}

async function failpoint({ library, make, before, protocol, methods, step, fault, nth }) {
  const place = await make();
  const honest = place.open();
  for (const batch of before.batches) await honest.commit(batch);
  const told = before.known();

  const wrong = faulty(place.open(), library, methods);
  const store = protocol(wrong.store);
  const open = () => library.openSession({ id: ID, ...eager(summariser(told)), store });
  wrong.arm(nth, fault, REFUSALS[nth % REFUSALS.length]);
  const run = STEPS[step]({ library, store, open, told, archive: before.archive });
  const problems = [];
  let code;
  const ended = await Promise.race([
    run.then(() => "done", (error) => {
      code = library.CompactionError.isInstance(error) ? error.code : String(error.stack);
      return "threw";
    }),
    wrong.died,
  ]);
  if (code && code !== "indeterminate" && !REFUSALS.includes(code)) problems.push(`it threw ${code}`);

  // Beyond the last call: the step has ended without a fault.
  if (!wrong.fired()) {
    await place.remove();
    return { fired: false, problems: ended === "done" ? [] : [`without a fault: ${ended} ${code}`] };
  }
  try {
    problems.push(...(await opened({ library, place, protocol, step, ended, told })));
  } catch (error) {
    problems.push(`opened again: ${error.code ?? error.stack}: ${error.message}`);
  }
  await place.remove();
  return { fired: true, problems };
}

/** What another process finds. */
async function opened({ library, place, protocol, step, ended, told }) {
  const store = () => protocol(place.open());
  const known = (await library.listSessions(store())).map(({ id }) => id);
  if (step === "delete" && !known.includes(ID)) {
    const anew = await library.openSession({ id: ID, store: store() });
    return (await anew.context.explain()).length > 0 ? ["deleted, and in the next of its name"] : [];
  }
  const problems = step === "delete" && ended === "done" ? ["deleted, and still there"] : [];
  const after = `${ID}/after/0`;
  const since = told.acked.length;
  const found = await read({ library, store, session: ID, after });
  told.acked.push({ call: after, since });
  for (const [kind, of] of Object.entries(check(found, told, { leaves: LEAVING.includes(step) }).problems)) {
    problems.push(...of.map((problem) => `${kind}: ${problem}`));
  }
  if (BEGINNING.includes(step)) problems.push(...(await begun(library, store(), { ended, known })));
  return problems;
}

/** A session that was to be begun is there and whole, or there is none. */
async function begun(library, store, { ended, known }) {
  if (!known.includes(OTHER)) return ended === "done" ? ["the new session was acknowledged and is not there"] : [];
  const session = await library.openSession({ id: OTHER, store });
  const problems = [];
  const ledger = await session.context.explain();
  if (ledger.length === 0) problems.push("the new session is there and empty");
  // A reference whose text is missing is read from its message all the same.
  problems.push(...(await session.archive.verify()).problems);
  let messages = 0;
  for await (const _ of session.archive.history()) messages++;
  if (messages !== ledger.length) problems.push(`the new session has ${messages} messages and ${ledger.length} fates`);
  return problems;
}
