/** What a file store says of files that are not as it left them: a torn end, damage, other files, none. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFile, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "context-compactor/node";
import { batchOf, model, whole } from "../support/file-checks.mjs";
import { batch, contents, edit, folder, journalOf } from "../support/file-store.mjs";

const corrupt = { code: "store_corrupt" };
const put = (key, value) => ({ ...batch({}), puts: [[key, typeof value === "string" ? Buffer.from(value) : value]] });

/** A directory with the store of `batches` batches, closed. */
async function made(context, batches) {
  const directory = await folder(context);
  const store = fileStore(directory);
  assert.deepEqual(await contents(store), {});
  for (let i = 0; i < batches; i++) await store.commit(batchOf(i));
  await store.close();
  const journal = await journalOf(directory);
  return { directory, journal, note: join(directory, "acknowledged"), bytes: await readFile(journal) };
}

/** Opens the store for `work`. */
async function using(directory, work, options) {
  const store = fileStore(directory, options);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

test("a torn last record that was not acknowledged is dropped, wherever it ends", async (context) => {
  const { directory, journal, note, bytes: before } = await made(context, 2);
  const noteBefore = await readFile(note);
  await using(directory, (store) => store.commit(batchOf(2)));
  const after = await readFile(journal);
  const head = after.indexOf("}\n", before.length);
  const isNear = (end, to) => Math.abs(end - to) < 5;
  for (let end = before.length; end <= after.length; end += isNear(end, after.length) || isNear(end, head) ? 1 : 5) {
    await writeFile(journal, after.subarray(0, end));
    await writeFile(note, noteBefore);
    const count = end === after.length ? 3 : 2;
    await using(directory, async (store) => {
      assert.equal(await whole(store, 2, `cut at ${end}`), count);
      await store.commit(batchOf(count));
    });
    assert.equal(await using(directory, (store) => whole(store, count + 1, `cut at ${end}, one more`)), count + 1);
  }
});

test("D15: an end that is missing although it was acknowledged is told, and the store goes on", async (context) => {
  const { directory, journal, note, bytes } = await made(context, 3);
  const noteBefore = await readFile(note);
  const [head] = Object.keys(model(1));
  for (const end of [bytes.length - 1, bytes.length - 40, bytes.length >> 1, 90]) {
    await writeFile(journal, bytes.subarray(0, end));
    await writeFile(note, noteBefore);
    await using(directory, async (store) => {
      const found = await contents(store);
      // It may have been written again since.
      if (found[head]) assert.match(found[head].damaged, /may be older/, `cut at ${end}`);
      assert.match(await store.dataLoss(), /^\d of the stored records cannot be read \(bytes \d+ to \d+ of journal 1\)/, `cut at ${end}`);
      await store.commit(put(JSON.parse(head), "again"));
    });
    await using(directory, async (store) => {
      assert.equal((await contents(store))[head], "again", `cut at ${end}`);
      assert.equal(await store.dataLoss(), undefined, `cut at ${end}`);
    });
  }
  await writeFile(journal, bytes);
  await writeFile(note, noteBefore);
  assert.equal(await using(directory, (store) => whole(store, 3, "put back")), 3);
});

test("D15: a record that is missing, doubled or moved", async (context) => {
  const { directory, journal, note, bytes } = await made(context, 3);
  const noteBefore = await readFile(note);
  const id = bytes.toString("latin1").split(" ")[3];
  const starts = [];
  for (let at = bytes.indexOf(`\n${id} `); at >= 0; at = bytes.indexOf(`\n${id} `, at + 1)) starts.push(at + 1);
  assert.equal(starts.length, 3);
  const [head, ...records] = [0, ...starts].map((at, i) => bytes.subarray(at, [...starts, bytes.length][i]));
  const [a, b, c] = records;
  for (const [what, parts] of Object.entries({ missing: [a, c], swapped: [b, a, c], moved: [a, Buffer.from("x"), b, c] })) {
    await writeFile(journal, Buffer.concat([head, ...parts]));
    await writeFile(note, noteBefore);
    await using(directory, async (store) => {
      const found = await contents(store);
      for (const [key, value] of Object.entries(found)) assert.ok(value.damaged || value === model(3)[key], `${what}: ${key}`);
      assert.match(await store.dataLoss(), /records cannot be read/, what);
      await store.commit(put(["meta", "more"], what));
    });
    assert.equal((await using(directory, contents))['["meta","more"]'], what);
  }
  // Where it was not meant to stand it is void, as that of a process which came second.
  await writeFile(journal, Buffer.concat([head, a, b, c, b, a]));
  await writeFile(note, noteBefore);
  await using(directory, async (store) => {
    assert.equal(await whole(store, 3, "doubled"), 3);
    await store.commit(batchOf(3));
  });
  assert.equal(await using(directory, (store) => whole(store, 4, "doubled, one more")), 4);
});

test("what a value holds is never taken for a record (S8: S2)", async (context) => {
  const { directory, journal, note, bytes } = await made(context, 3);
  const noteBefore = await readFile(note);
  // The journal itself, as a tool may return it that reads files.
  await using(directory, (store) => store.commit(put(["blobs", "s", "b", 0], Buffer.concat([bytes, bytes]))));
  const after = await readFile(journal);
  for (let end = bytes.length + 1; end < after.length; end += 211) {
    await writeFile(journal, after.subarray(0, end));
    await writeFile(note, noteBefore);
    await using(directory, async (store) => {
      assert.equal(await whole(store, 3, `cut at ${end}`), 3);
      await store.commit(batchOf(3));
    });
    assert.equal(await using(directory, (store) => whole(store, 4, `cut at ${end}, one more`)), 4);
  }
});

test("D2: a damaged value is reported when it is read, and carried on as damaged; the others can be read", async (context) => {
  const { directory, journal } = await made(context, 0);
  await using(directory, async (store) => {
    await store.commit(put(["log", "s", 0], "sound"));
    await store.commit(put(["log", "s", 1], "to be damaged"));
  });
  await edit(journal, (bytes) => void bytes.write("D", bytes.indexOf("damaged")));
  const options = { rewriteBytes: 1 };
  await using(
    directory,
    async (store) => {
      for (let i = 0; i < 10; i++) await store.commit(put(["sessions", "s"], `${i}`));
      const [damaged, sound] = await store.read([["log", "s", 1], ["log", "s", 0]]);
      assert.match(damaged.damaged, /^the value of \["log","s",1\] was damaged when journal 1 was written anew; damaged-0{11}1 has/);
      assert.equal(new TextDecoder().decode(sound), "sound");
      assert.deepEqual(await store.scan(["log", "s"], { after: ["log", "s", 0], limit: 1, maxBytes: 1 }), [[["log", "s", 1], damaged]]);
      assert.match(await readFile(join(directory, "damaged-000000000001"), "utf8"), /to be Damaged/);
      await store.commit({ ...batch({}), deletes: [["log", "s", 1]] });
    },
    options,
  );
  const found = await using(directory, contents, options);
  assert.deepEqual(found, { '["log","s",0]': "sound", '["sessions","s"]': "9" });
});

test("a journal of a newer schema is refused, one of the same hundred is used", async (context) => {
  const { directory, journal, bytes } = await made(context, 0);
  const title = bytes.toString("latin1");
  for (const newer of ["context-compactor journal 200 whatever follows\n", title.replace(" 100 ", " 1234 ")]) {
    await writeFile(journal, newer);
    await assert.rejects(using(directory, contents), { code: "schema_too_new" });
  }
  const id = title.split(" ")[3];
  const sum = createHash("sha256").update(id).update("142").digest("hex").slice(0, 32);
  await writeFile(journal, `context-compactor journal 142 ${id} ${sum}\n`);
  await using(directory, (store) => store.commit(batchOf(0)));
  assert.equal(await using(directory, (store) => whole(store, 1, "schema 142")), 1);
});

test("other files in place of the journal", async (context) => {
  const { directory, journal, bytes } = await made(context, 1);
  for (const text of ["", "something else\n", "context-compactor journal 99 ", "\0".repeat(500)]) {
    await writeFile(journal, text);
    await assert.rejects(using(directory, contents), corrupt, JSON.stringify(text.slice(0, 40)));
    assert.equal(await readFile(journal, "utf8"), text, "it is not touched");
  }
  await writeFile(journal, bytes);
  await writeFile(join(directory, "notes of mine.txt"), "not of the store");
  assert.equal(await using(directory, (store) => whole(store, 1, "beside another file")), 1);
});

test("a journal that is gone is no new store", async (context) => {
  const { directory, journal, note } = await made(context, 1);
  await rm(journal);
  await assert.rejects(using(directory, contents), corrupt);
  assert.deepEqual(await readdir(directory), ["acknowledged"]);
  await rm(note);
  assert.deepEqual(await using(directory, contents), {});
});

test("a note that is missing or makes no sense is no claim", async (context) => {
  const { directory, note } = await made(context, 2);
  for (const text of [undefined, "", "nonsense", "a".repeat(26) + " ".repeat(12) + "12345\n"]) {
    await rm(note);
    if (text !== undefined) await writeFile(note, text);
    assert.equal(await using(directory, (store) => whole(store, 2, `note ${text}`)), 2);
  }
});

test("files that are removed, cut or replaced under an open store", async (context) => {
  const harm = {
    removed: ({ directory }) => rm(directory, { recursive: true }),
    cut: ({ journal }) => truncate(journal, 200),
    replaced: async ({ journal, bytes }) => {
      await rm(journal);
      await writeFile(journal, bytes);
    },
  };
  for (const [what, damage] of Object.entries(harm)) {
    const all = await made(context, 2);
    const store = fileStore(all.directory);
    assert.equal(await whole(store, 2, what), 2);
    await damage(all);
    await assert.rejects(store.commit(batchOf(2)), corrupt, what);
    await assert.rejects(store.read([["sessions", "s"]]), corrupt, what);
    await store.close();
  }
});

test("a copy of the directory is the same store", async (context) => {
  const { directory } = await made(context, 3);
  const copy = await folder(context);
  for (const name of await readdir(directory)) await copyFile(join(directory, name), join(copy, name));
  assert.deepEqual(await using(copy, contents), model(3));
});

test("D15, D19: a process whose record another one could not read, and went on without, reports it", async (context) => {
  for (const teller of ["itself", "who opens the store next"]) {
    const { directory, journal } = await made(context, 2);
    const [writer, other] = [fileStore(directory), fileStore(directory)];
    for (const store of [writer, other]) assert.equal(await store.dataLoss(), undefined);
    // No note says that it was on the disk.
    await writer.commit({ ...put(["log", "t", 1], "acknowledged"), durability: "relaxed" });
    await edit(journal, (bytes) => {
      const head = bytes.lastIndexOf('{"at":');
      for (const at of [head + 2, head + 9]) bytes[at] ^= 1;
    });
    await other.commit(put(["log", "t", 2], "other"));
    assert.equal(await other.dataLoss(), undefined, "it never saw it");
    assert.deepEqual(await writer.read([["log", "t", 1]]), [undefined]);
    if (teller === "itself") assert.match(await writer.dataLoss(), /another process could not read records/);
    await writer.close();
    const told = await using(directory, (store) => store.dataLoss());
    if (teller === "itself") assert.equal(told, undefined, "once");
    else assert.match(told, /another process could not read records/);
    await other.close();
  }
});
