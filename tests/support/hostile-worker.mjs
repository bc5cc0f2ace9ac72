/** What `tests/workerd/hostile.test.mjs` runs in Durable Objects: one object for each case. */

import * as library from "./offload.mjs";
import { durableObjectStore } from "context-compactor/cloudflare";
import { hostileCases } from "./hostile.mjs";

/** Sessions of a case have names of their own: they share the tables of its object. */
const STORES = {
  tables: ({ ctx }) => durableObjectStore(ctx),
  "tables and a bucket": ({ ctx, env }) => durableObjectStore(ctx, { bigObjects: env.BIG }),
};

function cases(here, store, options) {
  return hostileCases(library, () => STORES[store](here), options);
}

export class Hostile {
  constructor(ctx, env) {
    Object.assign(this, { ctx, env });
  }

  async fetch(request) {
    const { store, name, options } = await request.json();
    const found = cases(this, store, options).find((found) => found.name === name);
    const wrong = await found.run().then(
      () => null,
      (error) => String(error?.stack ?? error),
    );
    const big = await this.env.BIG.list();
    await this.ctx.storage.deleteAll();
    if (big.objects.length > 0) await this.env.BIG.delete(big.objects.map(({ key }) => key));
    return Response.json({ wrong, objects: big.objects.length });
  }
}

export default {
  async fetch(request, env) {
    const body = await request.text();
    const { store, name, options } = JSON.parse(body);
    if (name === undefined) {
      return Response.json(cases({}, store, options).map(({ name }) => name));
    }
    return env.HOSTILE.get(env.HOSTILE.idFromName(`${store}: ${name}`)).fetch(request.url, { method: "POST", body });
  },
};
