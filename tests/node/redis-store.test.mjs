/** Sessions in Redis (E7): on a server that is started here, through both clients. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { openSession } from "context-compactor";
import { redisStore } from "context-compactor/redis";
import { conformance, durability } from "../support/database-suite.mjs";
import { placesOn } from "../support/databases.mjs";
import { missing, startRedis } from "../support/servers.mjs";

const none = { expect: [], puts: [], deletes: [], durability: "strict" };
const KEY = ["meta", "a"];

describe("E7 Redis", { skip: missing("redis") }, () => {
  let server, client;
  before(async () => {
    server = await startRedis();
    client = new Redis({ path: server.at, retryStrategy: () => 50, maxRetriesPerRequest: null });
    client.on("error", () => {});
  });
  after(async () => {
    client.disconnect();
    await server.stop();
  });
  const at = () => server.at;

  for (const name of ["ioredis", "redis"]) conformance(name, () => placesOn(name, at())());

  for (const name of ["ioredis", "redis"]) durability(name, { at, server: () => server });

  test("E7 says process unless it is told otherwise", async () => {
    assert.equal(redisStore(client).caps.durable, "process");
    assert.equal(redisStore(client, { durable: "synced" }).caps.durable, "synced");
  });

  test("E7 keys are in one slot of a cluster, and one that is executed is no conflict with itself", async () => {
    const store = redisStore(client, { prefix: "own" });
    const sent = [];
    const twice = { callBuffer: async (...command) => {
      sent.push(command[1]);
      if (command[0] === "EVALSHA") await client.callBuffer(...command);
      return client.callBuffer(...command);
    } };
    const resent = redisStore(twice, { prefix: "own" });
    await resent.commit({ ...none, expect: [{ key: KEY, version: null }], puts: [[KEY, Uint8Array.of(1)]] });
    await resent.commit({ ...none, expect: [{ key: KEY, version: 1 }], puts: [[KEY, Uint8Array.of(2)]] });
    await assert.rejects(store.commit({ ...none, expect: [{ key: KEY, version: 1 }] }), { code: "conflict", message: /version 2, not version 1/ });
    await store.commit({ ...none, expect: [{ key: KEY, version: 2 }] });
    const names = (await client.keys("*own*")).sort();
    assert.ok(names.length > 3 && names.every((name) => name.startsWith("{own}:")), String(names));
    assert.ok((await Promise.all(names.filter((name) => name.includes(":commit:")).map((name) => client.ttl(name)))).every((ttl) => ttl > 0 && ttl <= 120));
  });

  test("E7 a server that evicts is a warning, and one that is full refuses", async () => {
    const warnings = [];
    const session = async () => {
      const opened = await openSession({ id: "a", store: redisStore(client, { prefix: "full" }), contextWindow: 8_000 });
      opened.on("warning", ({ code, message }) => warnings.push([code, message]));
      await new Promise((resolve) => setTimeout(resolve, 20));
      return opened;
    };
    await (await session()).close();
    assert.deepEqual(warnings, []);
    await client.config("SET", "maxmemory-policy", "allkeys-lru");
    await (await session()).close();
    await client.config("SET", "maxmemory-policy", "noeviction");
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0][0], "not_persisted");
    assert.match(warnings[0][1], /maxmemory-policy allkeys-lru/);
    const one = await session();
    await one.append({ role: "user", content: "kept" });
    await client.config("SET", "maxmemory", "1");
    await assert.rejects(one.append({ role: "user", content: "refused" }), { code: "quota_exceeded" });
    await client.config("SET", "maxmemory", "0");
    await one.append({ role: "user", content: "kept too" });
    const found = [];
    for await (const { content } of one.archive.history()) found.push(content);
    assert.deepEqual(found, ["kept", "kept too"]);
    await one.close();
  });

  test("E7 what is stored by a later release, or by somebody else, is refused", async () => {
    await client.hset("{later}:versions", "", "200");
    await assert.rejects(async () => redisStore(client, { prefix: "later" }).read([KEY]), { code: "schema_too_new" });
    await client.set("{taken}:values", "x");
    await assert.rejects(async () => redisStore(client, { prefix: "taken" }).read([KEY]), { code: "store_corrupt", message: /prefix/ });
    const closed = redisStore(client);
    await closed.close();
    await assert.rejects(closed.read([KEY]), { code: "closed" });
  });
});

test("E7 what is no client, and wrong options, are refused with what to pass", () => {
  for (const wrong of [undefined, {}, "redis://"]) assert.throws(() => redisStore(wrong), { code: "invalid_option", field: "client" });
  const client = { callBuffer() {} };
  for (const prefix of ["", "a{b}", 7]) assert.throws(() => redisStore(client, { prefix }), { code: "invalid_option", field: "prefix" });
  assert.throws(() => redisStore(client, { durable: "yes" }), { code: "invalid_option", field: "durable" });
  assert.throws(() => redisStore(client, { name: "x" }), { code: "invalid_option", field: "name" });
});

test("E7 what a client throws without an answer of the server leaves a commit in doubt", async () => {
  const failing = (error) =>
    redisStore({
      async callBuffer(name) {
        if (name === "EVALSHA" || name === "HMGET") throw error;
        return name === "HGET" ? null : Buffer.from("x");
      },
    });
  const commit = (error) => failing(error).commit({ ...none, puts: [[KEY, Uint8Array.of(1)]] });
  await assert.rejects(commit(new Error("Connection is closed.")), { code: "indeterminate" });
  await assert.rejects(commit(new Error("READONLY You can't write against a read only replica.")), { code: "store_unavailable" });
  await assert.rejects(commit(new Error("OOM command not allowed")), { code: "quota_exceeded" });
  await assert.rejects(failing(new Error("Connection is closed.")).read([KEY]), { code: "store_unavailable" });
});
