/** Sessions by key, of which only so many are open. */

import { invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import { coreOf } from "../nouns/core.js";
import { openSession } from "../open.js";
import { deleteSession } from "../sessions.js";
import type { Message, Session, SessionPool, SessionPoolOptions, ThreadId, Watermark } from "../types.js";

/** Between being asked for a session and using it, an app may look something up. */
const HANDED_MS = 1_000;
/** Between `prepare` and the append of the answer, a model works. */
const ANSWER_MS = 10 * 60_000;
/** The longest time that a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls of a session that say what its app does. `prepare` is followed by a model's answer, the others by nothing. */
const CALLS = ["append", "sync", "prepare", "compact"] as const;

interface Place<M extends Message> {
  readonly opening: Promise<Session<M>>;
  session?: Session<M>;
  /** When it was used last. */
  used: number;
  /** Who waits for it. */
  waiting: number;
  /** Until when those who were given the session may take to make their first call, the oldest first. */
  handed: number[];
  /** Until when an answer of the model is expected. */
  answer: number;
}

/** The pool that `sessionPool` loads. Its options were checked. */
export function poolOf<M extends Message>({ max, idleMs, ...shared }: SessionPoolOptions & { max: number }): SessionPool<M> {
  const { store } = shared;
  /** Those that are open, or about to be; the one that was used least recently is the first. */
  const open = new Map<string, Place<M>>();
  /** Opening, closing and deleting under one key come one after the other: the last of them. */
  const last = new Map<string, Promise<unknown>>();
  let closed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function checkOpen(): void {
    if (closed) throw new CompactionError("closed", "the pool was closed: make a new one");
  }

  function queued<T>(id: string, work: () => Promise<T>): Promise<T> {
    const run = (last.get(id) ?? Promise.resolve()).then(work, work);
    const ended = () => {
      if (last.get(id) === run) last.delete(id);
    };
    run.then(ended, ended);
    last.set(id, run);
    return run;
  }

  function add(id: string): Place<M> {
    const opening = queued(id, () => openSession<M>({ ...shared, id }));
    const place: Place<M> = { opening, used: 0, waiting: 0, handed: [], answer: 0 };
    open.set(id, place);
    opening.then(
      (session) => watch(id, place, session),
      () => forget(id, place),
    );
    return place;
  }

  function forget(id: string, place: Place<M>): void {
    if (open.get(id) === place) open.delete(id);
  }

  function use(id: string, place: Place<M>): void {
    place.used = Date.now();
    if (open.get(id) !== place) return;
    open.delete(id);
    open.set(id, place);
  }

  /** Notices what the app calls. The session stays the one that every other part of the package knows. */
  function watch(id: string, place: Place<M>, session: Session<M>): void {
    place.session = session;
    const calls = session as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
    for (const name of CALLS) {
      const call = calls[name]!.bind(session);
      calls[name] = async (...given) => {
        place.handed.shift();
        place.answer = name === "prepare" ? Date.now() + ANSWER_MS : 0;
        use(id, place);
        try {
          return await call(...given);
        } finally {
          use(id, place);
          tidy();
        }
      };
    }
    const close = session.close.bind(session);
    session.close = (options) => {
      forget(id, place);
      return queued(id, () => close(options));
    };
  }

  function isIdle({ session, waiting, handed, answer }: Place<M>, now: number): boolean {
    return session !== undefined && waiting === 0 && Math.max(answer, ...handed) <= now && coreOf(session).turns.isIdle;
  }

  /** Closes what there is no room for, and what was idle for too long; then looks again when something else may be. */
  function tidy(): void {
    const now = Date.now();
    let next = Infinity;
    for (const [id, place] of open) {
      place.handed = place.handed.filter((until) => until > now);
      const isOver = open.size > max;
      const late = idleMs === undefined ? Infinity : place.used + idleMs;
      if ((isOver || late <= now) && isIdle(place, now)) {
        forget(id, place);
        // Everything that was acknowledged is stored: a failure here loses nothing.
        place.session!.close().catch(() => {});
      } else if (isOver || late !== Infinity) next = Math.min(next, isOver ? now + HANDED_MS : Math.max(late, now + HANDED_MS));
    }
    clearTimeout(timer);
    timer = undefined;
    if (closed || next === Infinity) return;
    timer = setTimeout(tidy, Math.min(next - now, LONGEST_MS));
    // It keeps no process of Node alive.
    (timer as { unref?: () => void }).unref?.();
  }

  async function sessionFor(threadId: ThreadId): Promise<Session<M>> {
    const id = idOf(threadId);
    for (;;) {
      checkOpen();
      const place = open.get(id) ?? add(id);
      place.waiting++;
      const session = await place.opening.finally(() => place.waiting--);
      // The app may have closed or deleted it while this call waited.
      if (open.get(id) !== place) continue;
      place.handed.push(Date.now() + HANDED_MS);
      use(id, place);
      tidy();
      return session;
    }
  }

  return {
    sessionFor,

    async delete(threadId) {
      checkOpen();
      const id = idOf(threadId);
      const place = open.get(id);
      if (place) forget(id, place);
      const watermark = shared.advanced?.watermark as Watermark | undefined;
      // Deleting closes a handle that is open, with whatever is under way on it.
      await queued(id, () => deleteSession(id, { store, ...(watermark && { watermark }) }));
      const session = await place?.opening.catch(() => undefined);
      await session?.close();
    },

    async close() {
      closed = true;
      clearTimeout(timer);
      const ends = Array.from(open.values(), async ({ opening }) => {
        const session = await opening.catch(() => undefined);
        await session?.close();
      });
      const results = await Promise.allSettled(ends);
      await Promise.allSettled(last.values());
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
  };
}

/** The `id` of a session: a name as it is, several as a text that no name alone is taken for. */
function idOf(threadId: ThreadId): string {
  const names = typeof threadId === "string" ? [threadId] : threadId;
  if (!Array.isArray(names) || names.length === 0 || names.some((name) => typeof name !== "string" || name === "")) {
    throw invalidOption("threadId", "must be a text, or a list of them such as [tenant, thread], and none of them empty");
  }
  const [only] = names as string[];
  return names.length === 1 && !only!.startsWith("[") ? only! : JSON.stringify(names);
}
