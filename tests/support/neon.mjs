/** A stand-in for Neon's proxy: what its client sends over HTTP goes to a PostgreSQL, in one transaction. */

import { createServer } from "node:http";

/** Everything as text, as Neon's proxy answers. */
const types = { getTypeParser: () => (value) => value };

/** Serves the database of `pool`; `{ url, close }`. */
export async function serveNeon(pool) {
  const asked = async (client, { query, params }) => {
    const { fields, rows, command, rowCount } = await client.query({ text: query, values: params, rowMode: "array", types });
    return { fields: fields.map(({ name, dataTypeID }) => ({ name, dataTypeID })), rows, command, rowCount };
  };
  const answer = async (body, level) => {
    if (!body.queries) return asked(pool, body);
    const client = await pool.connect();
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${level === "Serializable" ? "SERIALIZABLE" : "READ COMMITTED"}`);
      const results = [];
      for (const query of body.queries) results.push(await asked(client, query));
      await client.query("COMMIT");
      return { results };
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    try {
      const found = await answer(JSON.parse(text), request.headers["neon-batch-isolation-level"]);
      response.end(JSON.stringify(found));
    } catch (error) {
      // What failed in the database is an answer of it, with its code.
      response.writeHead(400).end(JSON.stringify({ message: error.message, code: error.code, severity: error.severity }));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/sql`,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}

