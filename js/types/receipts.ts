/** Receipts of compactions. */

/** A receipt of one compaction: what was replaced and by what, as SHA-256 in hex. Plain JSON. It has no text of the conversation. */
export interface CompactionReceipt {
  /** Version of this shape. */
  version: 1;
  /** Id of the session. */
  session: string;
  /** When its last step was stored, in ms since 1970. */
  at: number;
  /** The preset. */
  preset: string;
  /** As in `CompactionResult.trigger`. */
  trigger: string;
  /** The steps, in order, as in `Edit.kind`. */
  steps: string[];
  /** Tokens of the context before. */
  previousTokens: number;
  /** Tokens of the context after. */
  currentTokens: number;
  /** The last row of the log that belongs to it. Its hash is a hash of all rows before it, too. */
  log: { seq: number; hash: string };
  /** The messages that were replaced, and by what. */
  changes: ReceiptChange[];
  /** Of all the rest of the receipt. */
  sha256: string;
}

/** Something in place of messages. */
export interface ReceiptChange {
  /** The messages that were replaced; the hash is of the JSON text in the archive, and `index` is as
   *  `context.explain()` counts. */
  messages: { index: number; sha256: string }[];
  /** Earlier summaries that were replaced with them. */
  summaries?: { id: string; sha256: string }[];
  /** What replaced them: the message of a summary, or the shortened message `index`. The hash is of its JSON text without white
   *  space and with the fields of each object by name. */
  by: { summary: string; sha256: string } | { index: number; sha256: string };
  /** Texts that were stored, with references in their place. */
  texts?: { ref: string; sha256: string }[];
}
