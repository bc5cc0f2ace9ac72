/** Connections of the clients' own types are what the drivers take. Compiled, never run. */

import { createClient as createLibsql } from "@libsql/client";
import { neon, Pool as NeonPool } from "@neondatabase/serverless";
import type { D1Database } from "@cloudflare/workers-types";
import { Redis } from "ioredis";
import pg from "pg";
import postgres from "postgres";
import { createClient } from "redis";
import { sessionPool, type SessionPool, type Store } from "context-compactor";
import { redisStore } from "context-compactor/redis";
import { d1Driver, libsqlDriver, neonDriver, pgDriver, postgresDriver, sqlStore, type SqlDriver } from "context-compactor/sql";

export const drivers: SqlDriver[] = [
  pgDriver(new pg.Pool()),
  pgDriver(new NeonPool()),
  postgresDriver(postgres()),
  neonDriver(neon("postgres://")),
  libsqlDriver(createLibsql({ url: "file:x" })),
];
export const onWorkers = (env: { DB: D1Database }): Store => sqlStore(d1Driver(env.DB), { table: "chats" });
export const stores: Store[] = [sqlStore(drivers[0]!), redisStore(createClient()), redisStore(new Redis(), { durable: "synced" })];

interface Note {
  role: "user" | "assistant";
  content: string;
}
export const pool: SessionPool<Note> = sessionPool<Note>({ store: stores[0]!, max: 10, idleMs: 60_000, contextWindow: 8_000 });
export const appended: Promise<void> = pool.sessionFor(["tenant", "thread"]).then((session) => session.append({ role: "user", content: "" }));
