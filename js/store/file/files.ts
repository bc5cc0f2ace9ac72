/**
 * What a store needs of the files of a host, and their names. These are fixed, or numbers and random ids, never text of a user:
 *
 *     journal-000000000007           the journal; lower numbers are sealed, and empty soon
 *     journal-000000000008.<id>.new  the next one while it is being written
 *     acknowledged                   how far the journal is known to be on the disk
 *     damaged-000000000006           a journal that was damaged when it was rewritten, for `salvage`; it can be deleted,
 *                                    and is when the sessions are for which it was kept
 */

/** A file that is open, as `node:fs` has it. */
export interface File {
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  /** Writes the bytes from `offset` on at the end of the file. */
  write(bytes: Uint8Array, offset?: number): Promise<{ bytesWritten: number }>;
  write(text: string, position: number, encoding: "latin1"): Promise<unknown>;
  /** `nlink`: 0 where it has no name any more. `isReplaced`: the next journal is there, and this one is not any more. */
  stat(): Promise<{ size: number; nlink: number; isReplaced?: boolean }>;
  datasync(): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** A file of ours, and why it cannot be written when it cannot. */
export interface Opened {
  handle: File;
  readOnly?: unknown;
}

/** A file under a name that nobody else has. */
export interface Fresh {
  handle: File;
  /** Makes it the journal of its number for everyone, unless somebody was faster. */
  publish(): Promise<void>;
  /** Closes it and removes the name that nobody else has. */
  discard(): Promise<void>;
}

/** Where the files are. */
export interface Directory {
  /** The numbers of the journals and of those that were kept, in order, and whether anything was ever acknowledged here. */
  look(): Promise<{ journals: number[]; kept: number[]; used: boolean }>;
  /** Opens journal `number`; undefined when it is gone. */
  journal(number: number): Promise<Opened | undefined>;
  /** Opens what was kept of journal `number`, to be read. */
  kept(number: number): Promise<Opened>;
  /** Opens the note of what was acknowledged; undefined when there is none and `make` is false. */
  acknowledged(make: boolean): Promise<Opened | undefined>;
  /** A file that is to become journal `number`. */
  fresh(number: number): Promise<Fresh>;
  /** Keeps what journal `number` has, which is damaged and about to be replaced. */
  keep(number: number): Promise<void>;
  /** Removes what was kept of journal `number`. */
  removeKept(number: number): Promise<void>;
  /** Resolves when the names in the directory are on the disk. */
  sync(): Promise<void>;
  /** Empties the journals before `number`, which is published, and removes what nobody needs. What fails stays. */
  clean(number: number): Promise<void>;
  /** Lets go of the files, which are all closed. */
  close(): Promise<void>;
  /** Calls `work` in a turn, where the host lets only one have the files at a time; others that wait come first. */
  turn<T>(work: () => Promise<T>): Promise<T>;
  /** Calls `work` in the turn that there is, which lasts until then, or else in one of its own. */
  within<T>(work: () => Promise<T>): Promise<T>;
}

export const NAME = /^journal-(\d{12})(\.[a-z2-7]{26}\.new)?$/;
export const KEPT = /^damaged-(\d{12})$/;
export const ACKNOWLEDGED = "acknowledged";

export function nameOf(number: number): string {
  return `journal-${String(number).padStart(12, "0")}`;
}

export function keptName(number: number): string {
  return `damaged-${String(number).padStart(12, "0")}`;
}

/** Those of the journals among `names`, in order, or of other files. */
export function numbers(names: string[], pattern = NAME): number[] {
  const journals = names.map((name) => pattern.exec(name)).filter((match) => match && !match[2]);
  return journals.map((match) => Number(match![1])).sort((a, b) => a - b);
}
