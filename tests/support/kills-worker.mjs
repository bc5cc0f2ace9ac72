/** A Worker whose Durable Objects write to a session until they are ended, or read it. */

import * as library from "./offload.mjs";
import { durableObjectStore } from "context-compactor/cloudflare";
import { read, write } from "./writer.mjs";

export class Written {
  #ended = false;

  constructor(ctx, env) {
    Object.assign(this, { ctx, env });
  }

  async fetch(request) {
    const { action, origin, ...options } = await request.json();
    const store = () => durableObjectStore(this.ctx, { bigObjects: this.env.BIG });
    const tell = async (path, body = null) => {
      const response = await fetch(`${origin}${path}`, { method: "POST", body: JSON.stringify(body) });
      return response.json();
    };
    switch (action) {
      case "read":
        return Response.json(await read({ ...options, library, store }));
      case "write":
        await write({ ...options, library, store, tell }).catch((error) => {
          if (!this.#ended) return tell("/broken", String(error?.stack ?? error));
        });
        return Response.json(null);
      default:
        this.#ended = true;
        this.ctx.abort("ended by the test");
        return new Promise(() => {});
    }
  }
}

export default {
  async fetch(request, env) {
    const body = await request.text();
    return env.WRITTEN.get(env.WRITTEN.idFromName(JSON.parse(body).session)).fetch(request.url, { method: "POST", body });
  },
};
