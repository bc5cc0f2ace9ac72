/** The suite of stores on `bun:sqlite`, in Bun. Prints how many checks passed, and which failed. */

import { Database } from "bun:sqlite";
import { sqliteDriver, sqlStore } from "context-compactor/sql";
import { storeConformance } from "context-compactor/testing";

const db = new Database(":memory:");
const failed = [];
let passed = 0;
const fresh = async () => sqlStore(sqliteDriver(db), { table: `t${passed + failed.length}` });
for (const { name, run } of storeConformance(fresh)) {
  await run().then(() => passed++, (error) => failed.push(`${name}: ${error}`));
}
console.log(JSON.stringify({ passed, failed }));
