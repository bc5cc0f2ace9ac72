/** The store of files: the contract, what stands on the disk, and what it refuses. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { CompactionError } from "context-compactor";
import { storeConformance } from "context-compactor/testing";
import { fileStore } from "context-compactor/node";
import { batch, contents, folder, journalOf, loadStore } from "../support/file-store.mjs";
import { run, start } from "../support/file-store-process.mjs";

const exec = promisify(execFile);
const put = (key, text) => batch({ puts: [[key, text]] });

for (const [name, options] of Object.entries({ strict: {}, relaxed: { durability: "relaxed" }, "written anew all the time": { rewriteBytes: 1 } })) {
  describe(name, () => {
    let context, count = 0;
    const fresh = async () => fileStore(join(await folder(context), `store-${count++}`), options);
    for (const { name, run } of storeConformance(fresh)) {
      test(name, (own) => {
        context = own;
        return run();
      });
    }
  });
}

test("says how durable it is", () => {
  assert.equal(fileStore("x").caps.durable, "synced");
  assert.equal(fileStore("x", { durability: "relaxed" }).caps.durable, "process");
});

test("refuses bad options before it touches the disk", () => {
  for (const directory of [undefined, "", 7, "a\0b"]) assert.throws(() => fileStore(directory), { code: "invalid_option", field: "directory" });
  assert.throws(() => fileStore("x", { durability: "none" }), { code: "invalid_option", field: "durability" });
  for (const rewriteBytes of [0, NaN, "1"]) assert.throws(() => fileStore("x", { rewriteBytes }), { code: "invalid_option", field: "rewriteBytes" });
  assert.throws(() => fileStore("x", { name: "y" }), { code: "invalid_option", field: "name" });
});

test("what is called after `close` rejects, what was called before it ends", async (context) => {
  const directory = await folder(context);
  const store = fileStore(directory);
  const pending = [store.commit(put(["meta", "a"], "1")), store.commit(put(["meta", "b"], "2")), store.read([["meta", "a"]])];
  await store.close();
  await Promise.all(pending);
  const closed = (error) => CompactionError.isInstance(error) && error.code === "closed";
  await assert.rejects(store.read([["meta", "a"]]), closed);
  await assert.rejects(store.scan(["meta"], { limit: 1, maxBytes: 1 }), closed);
  await assert.rejects(store.commit(put(["meta", "a"], "1")), closed);
  await store.close();
  const again = fileStore(directory);
  assert.deepEqual(await contents(again), { '["meta","a"]': "1", '["meta","b"]': "2" });
  await again.close();
});

test("commits of one moment are written and synced together", async (context) => {
  const library = await loadStore();
  const store = library.fileStore(await folder(context));
  await store.read([["meta", "a"]]);
  const counts = { write: 0, datasync: 0 };
  const before = library.disk.call;
  library.disk.call = (name, args, perform, file) => {
    if (name in counts && !file.path.endsWith("acknowledged")) counts[name]++;
    return before(name, args, perform, file);
  };
  await Promise.all(Array.from({ length: 200 }, (_, i) => store.commit(put(["log", "s", i], "x".repeat(1_000)))));
  // The first one does not wait for others.
  assert.deepEqual(counts, { write: 2, datasync: 2 });
  assert.equal(Object.keys(await contents(store)).length, 200);
  await store.commit({ ...put(["meta", "relaxed"], "1"), durability: "relaxed" });
  assert.deepEqual(counts, { write: 3, datasync: 2 });
  await store.close();
});

test("files are for this user alone, and have names of ours (S8: S4)", async (context) => {
  const directory = join(await folder(context), "not", "made", "yet");
  const store = fileStore(directory, { rewriteBytes: 1 });
  for (let i = 0; i < 12; i++) await store.commit(put(["sessions", "../../etc/passwd"], `${i}`));
  await store.close();
  const names = await readdir(directory);
  for (const name of names) {
    assert.match(name, /^(journal-\d{12}|acknowledged)$/);
    assert.equal((await stat(join(directory, name))).mode & 0o777, 0o600, name);
  }
  assert.equal((await stat(directory)).mode & 0o777, 0o700);
  assert.equal((await stat(join(directory, ".."))).mode & 0o777, 0o700);
});

test("values that are replaced do not take room for ever, and closed journals are emptied", async (context) => {
  const directory = await folder(context);
  const store = fileStore(directory, { rewriteBytes: 10_000 });
  for (let i = 0; i < 200; i++) await store.commit(put(["sessions", "s"], `${i} `.repeat(200)));
  await store.close();
  let bytes = 0;
  const names = await readdir(directory);
  for (const name of names) bytes += (await stat(join(directory, name))).size;
  assert.ok(bytes < 20_000, `${bytes} bytes`);
  assert.ok(names.length < 12, names.join(" "));
  assert.ok(!names.includes("journal-000000000001"), "the names of old journals go, too");
});

test("a symbolic link in place of a file is not followed", async (context) => {
  const base = await folder(context);
  const directory = join(base, "store");
  const store = fileStore(directory);
  await store.commit(put(["meta", "a"], "1"));
  await store.close();
  for (const name of ["journal-000000000001", "acknowledged"]) {
    const path = join(directory, name);
    const elsewhere = join(base, `${name}.elsewhere`);
    await rename(path, elsewhere);
    const before = await readFile(elsewhere, "utf8");
    await symlink(elsewhere, path);
    const linked = fileStore(directory);
    await assert.rejects(linked.commit(put(["meta", "b"], "2")), { code: "store_unavailable", message: /symbolic link/ });
    await linked.close();
    assert.equal(await readFile(elsewhere, "utf8"), before);
    await exec("rm", [path]);
    await rename(elsewhere, path);
  }
  const dangling = join(directory, "journal-000000000002");
  await symlink(join(base, "made"), dangling);
  const again = fileStore(directory);
  await assert.rejects(again.read([["meta", "a"]]), { code: "store_unavailable" });
  await again.close();
  assert.ok(!(await readdir(base)).includes("made"));
});

test("what is no file is not read, and a file is no directory", async (context) => {
  const directory = await folder(context);
  await exec("mkfifo", [join(directory, "journal-000000000001")]);
  const piped = fileStore(directory);
  await assert.rejects(piped.read([["meta", "a"]]), { code: "store_corrupt", message: /is no file/ });
  await piped.close();
  const file = join(directory, "file");
  await writeFile(file, "");
  for (const path of [file, join(file, "below")]) {
    await assert.rejects(fileStore(path).commit(put(["meta", "a"], "1")), { code: "store_unavailable" });
  }
});

/** What may be read and not be written; `lock` makes it so. */
async function readOnly(context, lock) {
  const directory = await folder(context);
  await chmod(directory, 0o755);
  const inner = join(directory, "store");
  await mkdir(inner);
  const store = fileStore(inner);
  await store.commit(put(["meta", "a"], "1"));
  await store.close();
  await lock(inner);
  return inner;
}

test("where this process may not write, commits say so and what is there can be read", async (context) => {
  if (process.getuid() !== 0) return context.skip("only root can become another user");
  const inner = await readOnly(context, async (inner) => {
    await chmod(inner, 0o755);
    for (const name of await readdir(inner)) await chmod(join(inner, name), 0o644);
  });
  assert.deepEqual(JSON.parse((await run("refused", inner, 65534)).at(-1)), [[49], "store_unavailable"]);
  const none = await folder(context);
  await chmod(none, 0o755);
  assert.deepEqual(JSON.parse((await run("refused", join(none, "store"), 65534)).at(-1)), ["store_unavailable", "store_unavailable"]);
});

test("D8: on a disk that is mounted for reading alone, too, and what is there is not said to be durable", async (context) => {
  const inner = await readOnly(context, (inner) => exec("mount", ["--bind", "-o", "ro", inner, inner])).catch((error) => error);
  if (inner instanceof Error) return context.skip(`nothing can be mounted here: ${inner.message.split("\n")[0]}`);
  try {
    const store = fileStore(inner);
    assert.deepEqual(await contents(store), { '["meta","a"]': "1" });
    await assert.rejects(store.commit(put(["meta", "b"], "2")), { code: "store_unavailable", message: /EROFS/ });
    assert.equal(store.caps.durable, "none");
    await store.close();
  } finally {
    await exec("umount", [inner]);
  }
});

test("a full disk: quota_exceeded, and on it goes when there is room (ENOSPC)", async (context) => {
  const directory = await folder(context);
  try {
    await exec("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", directory]);
  } catch (error) {
    return context.skip(`nothing can be mounted here: ${error.message.split("\n")[0]}`);
  }
  try {
    const store = fileStore(join(directory, "store"), { rewriteBytes: 1_000 });
    await writeFile(join(directory, "ballast"), new Uint8Array(200_000));
    let stored = 0;
    let error;
    while (!error) await store.commit(put(["log", "s", stored], `${stored} `.repeat(4_000))).then(() => stored++, (thrown) => (error = thrown));
    assert.equal(error.code, "quota_exceeded", error.message);
    assert.ok(stored > 3);
    const count = async (store) => Object.keys(await contents(store)).length;
    assert.equal(await count(store), stored);
    await assert.rejects(store.commit(put(["log", "s", stored], "x".repeat(60_000))), { code: "quota_exceeded" });
    await exec("rm", [join(directory, "ballast")]);
    await store.commit(put(["log", "s", stored], "there is room"));
    await store.close();
    const again = fileStore(join(directory, "store"));
    assert.equal(await count(again), stored + 1);
    await again.close();
  } finally {
    await exec("umount", [directory]);
  }
});

test("the journal is synced before the acknowledgement, once for each (fault row 13)", async (context) => {
  const strace = await exec("strace", ["-V"]).catch(() => undefined);
  if (!strace) return context.skip("strace is not installed");
  const directory = await folder(context, { onDisk: true });
  const trace = join(directory, "trace");
  const command = ["strace", "-f", "-y", "-s", "40", "-e", "trace=fdatasync,write", "-o", trace, process.execPath];
  const { ended, errors, lines } = start(["count", join(directory, "store"), "row", 20], command);
  if ((await ended) !== 0) return context.skip(`strace does not work here: ${errors().split("\n")[0]}`);
  assert.equal(lines.length, 20);
  const events = (await readFile(trace, "utf8")).split("\n").flatMap((call) => {
    if (/(fdatasync\(.*journal-|resumed>.*\) += 0$)/.test(call) && call.includes("= 0")) return ["synced"];
    if (/write\(\d+<.*journal-/.test(call)) return ["written"];
    return /write\(1<.*counted/.test(call) ? ["told"] : [];
  });
  let [written, told] = [0, 0];
  let synced = true;
  for (const event of events) {
    if (event === "written") [synced, written] = [false, written + 1];
    else if (event === "synced") synced = true;
    else assert.ok((told++, synced), `acknowledgement ${told} came before its sync`);
  }
  assert.equal(told, 20);
  assert.ok(written >= 20);
});

test("the journal can be read by people", async (context) => {
  const directory = await folder(context);
  const store = fileStore(directory);
  await store.commit(put(["log", "s", 0], '{"role":"user","content":"Hello, 世界"}'));
  await store.close();
  const [title, record, value] = (await readFile(await journalOf(directory), "utf8")).split("\n");
  assert.match(title, /^context-compactor journal 100 /);
  assert.match(record, /"puts":\[\[\["log","s",0\],1,\d+,\d+\]\]/);
  assert.equal(value, '{"role":"user","content":"Hello, 世界"}');
});
