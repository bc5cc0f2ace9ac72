/** The store of Durable Objects takes what the platform's own types say that it gives. Compiled, never run. */

import type { DurableObjectState, R2Bucket } from "@cloudflare/workers-types";
import { openSession, type Session, type Store } from "context-compactor";
import { durableObjectStore } from "context-compactor/cloudflare";

export class Chat {
  readonly #store: Store;

  constructor(ctx: DurableObjectState, env: { BIG: R2Bucket; MAYBE?: R2Bucket }) {
    this.#store = durableObjectStore(ctx);
    this.#store = durableObjectStore(ctx, { bigObjects: env.BIG });
    this.#store = durableObjectStore(ctx, { bigObjects: env.MAYBE });
    // @ts-expect-error: the storage is not the context
    durableObjectStore(ctx.storage);
    // @ts-expect-error: no such option
    durableObjectStore(ctx, { bucket: env.BIG });
  }

  open(): Promise<Session> {
    return openSession({ id: "chat", store: this.#store });
  }
}
