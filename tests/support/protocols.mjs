/** Protocols that are wrong in one way each, in front of a store that is right. The failpoints must catch every one. */

const only = (batch, changes) => ({ expect: [], puts: [], deletes: [], durability: batch.durability, ...changes });
const isOf = (table) => ([key]) => key[0] === table;

/** Writes rows of `table` in a commit of their own, after the rest. */
function behind(table) {
  return (store) => ({
    ...store,
    async commit(batch) {
      const late = batch.puts.filter(isOf(table));
      await store.commit({ ...batch, puts: batch.puts.filter((put) => !late.includes(put)) });
      if (late.length > 0) await store.commit(only(batch, { puts: late }));
    },
  });
}

export const protocols = {
  "the pointer before the view": behind("views"),
  "the reference before its text": behind("blobs"),
  "the session's row before the log": behind("log"),
  "acknowledges before it has written": (store) => {
    let late;
    // As a cache that is written when there is time.
    const flush = async () => {
      const batch = late;
      late = undefined;
      if (batch) await store.commit(batch);
    };
    return {
      ...store,
      read: async (keys) => (await flush(), store.read(keys)),
      scan: async (...values) => (await flush(), store.scan(...values)),
      async commit(batch) {
        await flush();
        late = batch;
      },
    };
  },
  "deletes the old view before it writes the new one": (store) => ({
    ...store,
    async commit(batch) {
      const views = batch.puts.filter(isOf("views")).map(([[table, session, generation]]) => [table, session, generation - 1]);
      const old = views.length > 0 ? await store.read(views) : [];
      const again = views.flatMap((key, at) => (old[at] ? [[key, old[at]]] : []));
      if (again.length > 0) await store.commit(only(batch, { deletes: again.map(([key]) => key) }));
      await store.commit({ ...batch, puts: [...batch.puts, ...again] });
    },
  }),
  "sends a batch again when it has no answer": (store) => ({
    ...store,
    async commit(batch) {
      await store.commit(batch);
      await store.commit({ ...batch, expect: [] });
    },
  }),
};
