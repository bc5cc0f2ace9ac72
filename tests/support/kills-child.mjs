/** A process that writes to a session until it is killed, or reads it: `fork`ed with what to do as JSON. */

import * as library from "./offload.mjs";
import * as node from "context-compactor/node";
import { read, write } from "./writer.mjs";

const { action, origin, folder, where, ...options } = JSON.parse(process.argv[2]);
const place = where && (await (await import("./databases.mjs")).connect(where));
const store = () => (place ? place.open() : node.fileStore(folder));

async function tell(path, body = null) {
  const response = await fetch(`${origin}${path}`, { method: "POST", body: JSON.stringify(body) });
  return response.json();
}

if (action === "read") {
  const found = await read({ ...options, library, store });
  await new Promise((resolve) => process.send(found, resolve));
} else await write({ ...options, library, store, tell }).catch((error) => tell("/broken", String(error?.stack ?? error)));
await place?.close();
process.disconnect();
