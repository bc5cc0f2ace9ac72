/** A process that appends to a session in a database: the first argument says where, to which, as whom, and how often. */

import { openSession } from "context-compactor";
import { connect } from "./databases.mjs";

const { where, id, name, count } = JSON.parse(process.argv[2]);
const { open, close } = await connect(where);
const session = await openSession({ id, store: open(), contextWindow: 32_000 });
for (let at = 0; at < count; at++) await session.append({ role: "user", content: `${name} ${at}` });
await session.close();
await close();
