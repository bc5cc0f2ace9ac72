/** A Worker with sessions in D1: the suite of stores, and what writes to a session until it is killed, or reads it. */

import * as library from "./offload.mjs";
import { d1Driver, sqlStore } from "context-compactor/sql";
import { storeConformance } from "context-compactor/testing";
import { read, write } from "./writer.mjs";

let tables = 0;
const cases = (env) => storeConformance(async () => sqlStore(d1Driver(env.DB), { table: `t${tables++}` }));

export default {
  async fetch(request, env) {
    const { action, origin, check, ...options } = await request.json();
    const store = () => sqlStore(d1Driver(env.DB));
    const tell = async (path, body = null) => {
      const response = await fetch(`${origin}${path}`, { method: "POST", body: JSON.stringify(body) });
      return response.json();
    };
    switch (action) {
      case "names":
        return Response.json(cases(env).map(({ name }) => name));
      case "check": {
        const error = await cases(env).find(({ name }) => name === check).run().catch(String);
        return Response.json({ error });
      }
      case "durable": {
        const asked = store();
        await asked.read([]);
        return Response.json(asked.caps.durable);
      }
      case "read":
        return Response.json(await read({ ...options, library, store }));
      default:
        await write({ ...options, library, store, tell }).catch((error) => tell("/broken", String(error?.stack ?? error)));
        return Response.json(null);
    }
  },
};
