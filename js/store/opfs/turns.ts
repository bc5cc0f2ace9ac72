/**
 * Turns of the workers that use one directory, of any tab.
 *
 * A browser gives a file to one worker at a time, so there is one at a time: who has the lock opens what it needs, looks at
 * what others appended, and closes it all before the lock goes on. Nothing is decided by that: the journal is one for many
 * writers anyway. A tab that is killed loses lock and files; one that is frozen with them makes the others fail, in time.
 */

import { Deadline } from "../../awake.js";
import { CompactionError } from "../../errors.js";
import { inTime, isNamed, WAIT_MS } from "./faults.js";

/** A file is let go a little after the lock of a worker that was ended. */
const RETRY_MS = 5;

/** A file that one worker has open. */
export interface Access {
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  flush(): void;
  close(): void;
}

interface Turn {
  begun: Promise<() => void>;
  /** Calls that belong to it: the last one ends it. */
  users: number;
  /** Open files by their names. */
  readonly files: Map<string, Promise<Access>>;
  ended: Promise<void>;
}

export class Turns {
  readonly #lock: string;
  #now: Turn | undefined;

  constructor(lock: string) {
    this.#lock = lock;
  }

  /** The turn that there is. */
  get now(): object | undefined {
    return this.#now;
  }

  /** Calls `work` in a new turn, so that others come in between. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    while (this.#now) await this.#now.ended;
    return this.join(work);
  }

  /** Calls `work` in the turn that there is, which lasts until then, or else in a new one. */
  async join<T>(work: () => Promise<T>): Promise<T> {
    const turn = (this.#now ??= this.#begin());
    turn.users++;
    try {
      await turn.begun;
      return await work();
    } finally {
      if (--turn.users === 0) this.#end(turn);
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

  #begin(): Turn {
    let ended!: () => void;
    const turn: Turn = {
      begun: lock(this.#lock),
      users: 0,
      files: new Map(),
      ended: new Promise((resolve) => (ended = resolve)),
    };
    turn.begun = turn.begun.then((leave) => () => {
      leave();
      ended();
    });
    turn.begun.catch(() => ended());
    return turn;
  }

  #end(turn: Turn): void {
    this.#now = undefined;
    const closed = Array.from(turn.files.values(), async (open) => (await open).close());
    void Promise.allSettled(closed).then(() => turn.begun.then((leave) => leave(), () => {}));
  }
}

/** Resolves to what lets go of the lock. */
function lock(name: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const late = new AbortController();
    const deadline = new Deadline(WAIT_MS, () => late.abort());
    const held = navigator.locks.request(name, { signal: late.signal }, () => {
      deadline.stop();
      return new Promise<void>((leave) => resolve(leave));
    });
    held.catch((cause: unknown) => {
      deadline.stop();
      const why = late.signal.aborted
        ? `another tab has had them for ${WAIT_MS / 1_000} s: close it, then try again`
        : "the lock of them cannot be had: try again";
      reject(new CompactionError("store_unavailable", `The store's files cannot be used: ${why}`, { cause }));
    });
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
