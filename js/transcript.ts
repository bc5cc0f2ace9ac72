/** A session's transcript, handed out page by page: the engine says what is on a page. */

import type { Gap, Message } from "./types.js";

/** Asks for a page; its `next` asks for the one after it. */
type Turn<T> = (cursor: unknown) => Promise<T & { next?: unknown }>;

async function* pages<T>(turn: Turn<T>): AsyncGenerator<T> {
  let cursor: unknown;
  do {
    const page = await turn(cursor);
    yield page as Awaited<T>;
    cursor = page.next;
  } while (cursor !== undefined);
}

/** A message of the log. */
export interface Logged {
  seq: number;
  index: number;
  body: string;
}

/** All messages in order, as `objectOf` has them. `onGap` receives what is missing before the next. */
export async function* historyOf<M extends Message>(
  turn: Turn<{ messages: Logged[]; gaps: Gap[] }>,
  objectOf: (message: Logged) => M,
  onGap: (gap: Gap) => void,
): AsyncGenerator<M> {
  for await (const { messages, gaps } of pages(turn)) {
    for (const message of messages) {
      while (gaps[0] && gaps[0].seq < message.seq) onGap(gaps.shift()!);
      yield objectOf(message);
    }
    gaps.forEach(onGap);
  }
}

/** All bytes, read as fast as they are taken. */
export function streamOf(turn: Turn<{ bytes: Uint8Array }>): ReadableStream<Uint8Array> {
  const bytes = pages(turn);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await bytes.next();
        if (done) controller.close();
        else controller.enqueue(value.bytes);
      },
      async cancel() {
        await bytes.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

/** All text. */
export async function textOf(turn: Turn<{ text: string }>): Promise<string> {
  const parts: string[] = [];
  for await (const { text } of pages(turn)) parts.push(text);
  return parts.join("");
}
