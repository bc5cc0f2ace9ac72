/**
 * Turns of the workers that use one directory, of any tab.
 *
 * A browser gives a file to one worker at a time, so there is one at a time: who has the lock opens what it needs, looks at
 * what others appended, and closes it all before the lock goes on. Nothing is decided by that: the journal is one for many
 * writers anyway. As opening takes longer than writing (130 ms in Firefox), a turn is kept for what may come next: shortly when
 * somebody else waits, who says so on a channel. So who lost a race reads and writes before the others do. A tab that is killed loses lock and files; one that is frozen with them makes the others fail, in time.
 */

import { Deadline } from "../../awake.js";
import { CompactionError } from "../../errors.js";
import { inTime, isNamed, WAIT_MS } from "./faults.js";

/** A file is let go a little after the lock of a worker that was ended. */
const RETRY_MS = 5;
/** How often those who wait say so. */
const ASK_MS = 50;
/** How long a turn is kept that nobody uses, alone and while others wait. */
const KEEP_MS = 100;
const LINGER_MS = 20;
/** A turn that others wait for takes nothing new after this long. */
const SLOT_MS = 100;

/** A file that one worker has open. */
export interface Access {
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  flush(): void;
  close(): void;
}

class Turn {
  readonly begun: Promise<void>;
  readonly ended: Promise<void>;
  /** Calls that belong to it. */
  users = 0;
  /** Open files by their names. */
  readonly files = new Map<string, Promise<Access>>();
  /** Somebody else waits for it to end. */
  isWanted = false;
  /** Something failed in it: the files are opened anew. */
  hasFailed = false;
  #since = Infinity;
  timer: ReturnType<typeof setTimeout> | undefined;
  #leave = () => {};

  constructor(name: string, ask: () => void) {
    let ended!: () => void;
    this.ended = new Promise((resolve) => (ended = resolve));
    this.begun = lock(name, ask).then(({ leave, hasWaited }) => {
      // Others may wait as this one did.
      this.isWanted ||= hasWaited;
      this.#since = Date.now();
      this.#leave = () => {
        leave();
        ended();
      };
    });
    this.begun.catch(() => (this.#leave = ended));
  }

  /** Nothing new belongs to it. */
  get isOver(): boolean {
    return this.hasFailed || (this.isWanted && Date.now() - this.#since > SLOT_MS);
  }

  async end(): Promise<void> {
    await Promise.allSettled(Array.from(this.files.values(), async (open) => (await open).close()));
    this.#leave();
  }
}

export class Turns {
  readonly #lock: string;
  readonly #channel: BroadcastChannel;
  #now: Turn | undefined;

  constructor(lock: string) {
    this.#lock = lock;
    this.#channel = new BroadcastChannel(lock);
    this.#channel.onmessage = () => this.#hurry();
  }

  /** The turn that there is. */
  get now(): object | undefined {
    return this.#now;
  }

  /** Calls `work` in a turn that is not over. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    for (let turn = this.#now; turn?.isOver; turn = this.#now) {
      if (turn.users === 0) this.#rest(turn);
      await turn.ended;
    }
    return this.join(work);
  }

  /** Calls `work` in the turn that there is, which lasts until then, or else in a new one. */
  async join<T>(work: () => Promise<T>): Promise<T> {
    const turn = (this.#now ??= new Turn(this.#lock, () => this.#channel.postMessage(null)));
    turn.users++;
    clearTimeout(turn.timer);
    try {
      await turn.begun;
      return await work();
    } catch (error) {
      turn.hasFailed = true;
      throw error;
    } finally {
      if (--turn.users === 0) this.#rest(turn);
    }
  }

  /** The open file `handle`, in the turn that there is. */
  open(name: string, handle: FileSystemFileHandle): Promise<Access> {
    const { files } = this.#now!;
    const open = files.get(name) ?? opened(handle);
    files.set(name, open);
    // It may be there the next time.
    open.catch(() => files.get(name) === open && files.delete(name));
    return open;
  }

  /** Closes a file that is to be removed. */
  async shut(name: string): Promise<void> {
    const open = this.#now?.files.get(name);
    this.#now?.files.delete(name);
    (await open?.catch(() => undefined))?.close();
  }

  async close(): Promise<void> {
    const turn = this.#now;
    if (turn) turn.hasFailed = true;
    if (turn?.users === 0) this.#rest(turn);
    await turn?.ended;
    this.#channel.close();
  }

  #hurry(): void {
    const turn = this.#now;
    if (!turn || turn.isWanted) return;
    turn.isWanted = true;
    if (turn.users === 0) this.#rest(turn);
  }

  /** Nobody uses the turn: it ends, now or soon. */
  #rest(turn: Turn): void {
    clearTimeout(turn.timer);
    const end = () => {
      this.#now = undefined;
      void turn.end();
    };
    if (turn.isOver) end();
    else turn.timer = setTimeout(end, turn.isWanted ? LINGER_MS : KEEP_MS);
  }
}

/** Resolves to what lets go of the lock. Calls `ask` now and then as long as another one has it. */
async function lock(name: string, ask: () => void): Promise<{ leave: () => void; hasWaited: boolean }> {
  let asking: ReturnType<typeof setInterval> | undefined;
  const late = new AbortController();
  const deadline = new Deadline(WAIT_MS, () => late.abort());
  try {
    const free = await inTime(request(name, { ifAvailable: true }), (leave) => leave?.());
    if (free) return { leave: free, hasWaited: false };
    // Who has it may have begun a new turn since.
    asking = setInterval(ask, ASK_MS);
    ask();
    return { leave: (await request(name, { signal: late.signal }))!, hasWaited: true };
  } catch (cause) {
    const why = late.signal.aborted
      ? `another tab has had them for ${WAIT_MS / 1_000} s: close it, then try again`
      : "the lock of them cannot be had: try again";
    throw new CompactionError("store_unavailable", `The store's files cannot be used: ${why}`, { cause });
  } finally {
    deadline.stop();
    clearInterval(asking);
  }
}

function request(name: string, options: LockOptions): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const hold = (lock: Lock | null) => lock ? new Promise<void>((leave) => resolve(leave)) : resolve(undefined);
    navigator.locks.request(name, options, hold).catch(reject);
  });
}

async function opened(handle: FileSystemFileHandle): Promise<Access> {
  const workers = handle as unknown as { createSyncAccessHandle(): Promise<Access> };
  for (const until = Date.now() + WAIT_MS; ; ) {
    try {
      return await inTime(workers.createSyncAccessHandle(), (open) => open.close());
    } catch (error) {
      if (!isNamed(error, "NoModificationAllowedError") || Date.now() > until) throw error;
    }
    await new Promise((go) => setTimeout(go, RETRY_MS));
  }
}
