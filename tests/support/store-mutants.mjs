/** Stores that are wrong in one way each, by the name of the check that finds it. */

const none = { expect: [], puts: [], deletes: [], durability: "strict" };
const text = (key) => JSON.stringify(key);
const tick = () => new Promise(setImmediate);

/** A mutant: the memory store with some methods replaced. */
function mutant(caughtBy, change) {
  const make = (memoryStore, tools) => {
    const store = memoryStore();
    return { ...store, ...change(store, tools) };
  };
  return { caughtBy, make };
}

/** Applies `batch` row by row, in as many commits. */
function piecemeal(store, { puts, deletes }) {
  for (const put of puts) store.commit({ ...none, puts: [put] });
  for (const key of deletes) store.commit({ ...none, deletes: [key] });
}

/** All entries under `prefix`. */
function all(store, prefix) {
  return store.scan(prefix, { limit: Infinity, maxBytes: Infinity });
}

const ORDER = "order: numbers by value, then strings by code unit, a prefix first";
const PREFIX = "scan: a prefix ends at a part, and tables are apart";
const PAGES = "scan: pages by limit are whole and in order, both ways";
const EXACT = "values: every byte comes back, in an array of exact length";
const ISOLATED = "values: the caller's later changes do not reach the store";
const CHANGES = "changes: where it tells of commits, the session and its version, as long as somebody listens";
const HOSTILE = "keys: hostile strings stay apart";

/** Sorts what a scan finds in another way. */
function sorted(compare) {
  return mutant(ORDER, (store) => ({
    scan(prefix, options) {
      const rows = all(store, prefix).sort(([a], [b]) => compare(a, b));
      if (options.reverse) rows.reverse();
      return rows.map(([key, value]) => [key, options.keysOnly ? new Uint8Array() : value]);
    },
  }));
}

/** Loses what differs between keys that `flatten` makes equal. */
function flattened(caughtBy, flatten) {
  return mutant(caughtBy, (store) => {
    const names = new Map();
    const known = (key) => names.get(flatten(key)) ?? key;
    return {
      read: (keys) => store.read(keys.map(known)),
      commit(batch) {
        for (const [key] of batch.puts) if (!names.has(flatten(key))) names.set(flatten(key), key);
        const seen = new Set();
        const puts = batch.puts
          .map(([key, value]) => [known(key), value])
          .filter(([key]) => {
            return seen.size < seen.add(text(key)).size;
          });
        store.commit({ ...batch, puts });
      },
    };
  });
}

/** Tells of commits as `say` has it: what is told of a session and its version, whether it was written, and whom. */
function telling(say) {
  return mutant(CHANGES, (store) => {
    const listeners = new Set();
    return {
      changes(listener) {
        const own = (...told) => listener(...told);
        listeners.add(own);
        return () => say.forgets !== false && listeners.delete(own);
      },
      commit(batch) {
        const tell = (isWritten) => {
          const row = batch.expect.find(({ key: [table] }) => table === "sessions");
          const told = row && say.of(row.key[1], (row.version ?? 0) + 1, isWritten);
          if (told) for (const listener of listeners) listener(...told);
        };
        try {
          store.commit(batch);
        } catch (error) {
          tell(false);
          throw error;
        }
        tell(true);
      },
    };
  });
}

export const mutants = {
  "claims to be atomic per key": mutant("caps: says what it can, in whole numbers", (store) => ({
    caps: { ...store.caps, atomic: "single-key" },
  })),
  "leaves missing values out": mutant(
    "read: values in the order of the keys, undefined for a missing one",
    (store) => ({ read: (keys) => store.read(keys).filter(Boolean) }),
  ),
  "returns everything for no keys": mutant("read: no keys, no values", (store) => ({
    read: (keys) => (keys.length ? store.read(keys) : [new Uint8Array()]),
  })),
  "reads key by key while others write": mutant("read: sees no half of a batch", (store) => {
    let queue = Promise.resolve();
    return {
      async read(keys) {
        const values = [];
        for (const key of keys) {
          values.push(...store.read([key]));
          await tick();
        }
        return values;
      },
      commit: (batch) => (queue = queue.then(tick).then(() => store.commit(batch))),
    };
  }),
  "ignores deletes": mutant("commit: puts, replaces and deletes in one batch", (store) => ({
    commit: (batch) => store.commit({ ...batch, deletes: [] }),
  })),
  "refuses an empty batch": mutant("commit: an empty batch changes nothing", (store) => ({
    commit(batch) {
      if (!batch.puts.length && !batch.deletes.length && !batch.expect.length) throw new Error("empty");
      store.commit(batch);
    },
  })),
  "refuses to delete a missing key": mutant("commit: deleting a missing key is no error", (store) => ({
    commit(batch) {
      if (store.read(batch.deletes).includes(undefined)) throw new Error("missing");
      store.commit(batch);
    },
  })),
  "acknowledges before it has written": mutant(
    "commit: can be read as soon as it is acknowledged",
    (store) => ({
      async commit(batch) {
        store.commit({ ...none, expect: batch.expect });
        const puts = batch.puts.map(([key, value]) => [[...key], value.slice()]);
        setTimeout(
          () =>
            Promise.resolve({ ...batch, puts, expect: [] })
              .then(store.commit)
              .catch(() => {}),
          2,
        );
      },
    }),
  ),
  "counts only the versions that were expected": mutant(
    "versions: count the commits that put the key, expected or not",
    (store) => {
      const versions = new Map();
      return {
        commit(batch) {
          const version = (key) => versions.get(text(key)) ?? (store.read([key])[0] ? 1 : null);
          for (const { key, version: wanted } of batch.expect) {
            if (version(key) !== wanted) store.commit({ ...none, expect: [{ key, version: -1 }] });
          }
          for (const { key } of batch.expect) {
            if (batch.puts.some(([put]) => text(put) === text(key)))
              versions.set(text(key), (version(key) ?? 0) + 1);
          }
          store.commit({ ...batch, expect: [] });
        },
      };
    },
  ),
  "remembers the version of a deleted key": mutant(
    "versions: a key that was deleted begins again at 1",
    (store) => {
      const before = new Map();
      return {
        commit(batch) {
          const expect = batch.expect.map(({ key, version }) => {
            return { key, version: version === null ? null : version - (before.get(text(key)) ?? 0) };
          });
          store.commit({ ...batch, expect });
          for (const key of batch.deletes) before.set(text(key), 2);
        },
      };
    },
  ),
  "has no compare-and-set": mutant("expect: null means that the key must not exist", (store) => ({
    commit: (batch) => store.commit({ ...batch, expect: [] }),
  })),
  "checks the first expectation only": mutant("expect: a conflict writes and deletes nothing", (store) => ({
    commit: (batch) => store.commit({ ...batch, expect: batch.expect.slice(0, 1) }),
  })),
  "writes, then checks": mutant("expect: a conflict writes and deletes nothing", (store) => ({
    commit(batch) {
      try {
        store.commit(batch);
      } catch (error) {
        if (error.code === "conflict") piecemeal(store, batch);
        throw error;
      }
    },
  })),
  "reports a conflict with an error of its own": mutant(
    "expect: null means that the key must not exist",
    (store) => ({
      commit(batch) {
        try {
          store.commit(batch);
        } catch {
          throw new Error("conflict");
        }
      },
    }),
  ),
  "writes row by row until one fails": mutant(
    "atomicity: a value that is no Uint8Array writes nothing",
    (store) => ({
      commit(batch) {
        store.commit({ ...none, expect: batch.expect });
        piecemeal(store, batch);
      },
    }),
  ),
  "cuts a value that is too long": mutant(
    "atomicity: a value over maxValueBytes writes nothing",
    (store) => ({
      commit(batch) {
        const puts = batch.puts.map(([key, value]) => [key, value.slice(0, store.caps.maxValueBytes)]);
        store.commit({ ...batch, puts });
      },
    }),
  ),
  "splits a batch that is too long": mutant(
    "atomicity: a batch over maxBatchOps writes nothing",
    (store) => ({
      commit(batch) {
        const { maxBatchOps } = store.caps;
        store.commit({ ...batch, puts: batch.puts.slice(0, maxBatchOps) });
        if (batch.puts.length > maxBatchOps) store.commit({ ...none, puts: batch.puts.slice(maxBatchOps) });
      },
    }),
  ),
  "lets the last write of a key win": mutant(
    "atomicity: a key that is written twice is refused",
    (store) => ({
      commit(batch) {
        const puts = [...new Map(batch.puts.map((put) => [text(put[0]), put])).values()];
        store.commit({ ...batch, puts });
      },
    }),
  ),
  "checks and writes at two moments": mutant(
    "concurrency: exactly one of many conflicting commits wins",
    (store) => ({
      async commit(batch) {
        store.commit({ ...none, expect: batch.expect });
        await tick();
        store.commit({ ...batch, expect: [] });
      },
    }),
  ),
  "loses increments": mutant("concurrency: no increment is lost", (store) => ({
    async commit(batch) {
      try {
        store.commit({ ...none, expect: batch.expect });
        await tick();
        store.commit(batch);
      } catch (error) {
        if (batch.expect.length === 0) throw error;
      }
    },
  })),
  "sorts numbers as text": sorted((a, b) => (`${a}` < `${b}` ? -1 : 1)),
  "sorts strings before numbers": sorted((a, b) => {
    if (typeof a[1] !== typeof b[1]) return typeof a[1] === "string" ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a.length - b.length;
  }),
  "sorts strings by code point": sorted((a, b) => Buffer.compare(Buffer.from(text(a)), Buffer.from(text(b)))),
  "joins the parts of a key": flattened(HOSTILE, (key) => key.join("/")),
  "takes numbers for text": flattened(HOSTILE, (key) => text(key.map(String))),
  "cuts a key at a question mark": flattened(HOSTILE, (key) => text(key).replace(/\?.*/, "")),
  "keeps rows in a plain object": flattened(HOSTILE, (key) =>
    key.includes("__proto__") ? text(["blobs", "a"]) : text(key),
  ),
  "takes any table": mutant("keys: a key without a known table is refused", (store) => ({
    commit(batch) {
      store.commit({ ...batch, puts: batch.puts.filter(([key]) => key.length > 1 && key[0] !== "nowhere") });
    },
  })),
  "takes a prefix for text": mutant(PREFIX, (store) => ({
    scan: (prefix, options) =>
      all(store, [prefix[0]])
        .filter(([key]) => key.join("\n").startsWith(prefix.join("\n")))
        .map(([key, value]) => [key, options.keysOnly ? new Uint8Array() : value]),
  })),
  "leaves out the row that is the prefix itself": mutant(PREFIX, (store) => ({
    scan: (prefix, options) => store.scan(prefix, options).filter(([key]) => key.length > prefix.length),
  })),
  "ignores `limit`": mutant(PAGES, (store) => ({
    scan: (prefix, options) => store.scan(prefix, { ...options, limit: Infinity }),
  })),
  "ignores `after` in reverse": mutant(PAGES, (store) => ({
    scan(prefix, { after, ...options }) {
      return store.scan(prefix, options.reverse || !after ? options : { ...options, after });
    },
  })),
  "turns a page around instead of the range": mutant(PAGES, (store) => ({
    scan: (prefix, options) => {
      const page = store.scan(prefix, { ...options, reverse: false });
      return options.reverse ? page.reverse() : page;
    },
  })),
  "begins at `after` instead of past it": mutant(PAGES, (store, { compareKeys }) => ({
    scan: (prefix, options) => {
      const { after, reverse, limit } = options;
      const rows = store.scan(prefix, { ...options, limit: Infinity });
      if (!after) return rows.slice(0, limit);
      const rest = all(store, prefix).filter(([key]) => compareKeys(key, after) * (reverse ? -1 : 1) >= 0);
      return (reverse ? rest.reverse() : rest).slice(0, limit);
    },
  })),
  "returns values with `keysOnly`": mutant(PAGES, (store) => ({
    scan: (prefix, options) => store.scan(prefix, { ...options, keysOnly: false }),
  })),
  "ignores `maxBytes`": mutant("scan: stops before maxBytes, but returns one entry at least", (store) => ({
    scan: (prefix, options) => store.scan(prefix, { ...options, maxBytes: Infinity }),
  })),
  "returns nothing when the first value passes `maxBytes`": mutant(
    "scan: stops before maxBytes, but returns one entry at least",
    (store) => ({
      scan: (prefix, options) => {
        const page = store.scan(prefix, options);
        return page.length === 1 && page[0][1].byteLength > options.maxBytes ? [] : page;
      },
    }),
  ),
  "needs the row of `after`": mutant("scan: `after` may be a key that is gone", (store) => ({
    scan: (prefix, options) =>
      options.after && !store.read([options.after])[0] ? [] : store.scan(prefix, options),
  })),
  "keeps values as text": mutant(EXACT, (store) => ({
    commit(batch) {
      const puts = batch.puts.map(([key, value]) => [key, Buffer.from(Buffer.from(value).toString())]);
      store.commit({ ...batch, puts });
    },
  })),
  "returns views of a larger buffer": mutant(EXACT, (store) => ({
    read: (keys) =>
      store.read(keys).map((value) => {
        if (!value) return value;
        const larger = new Uint8Array(value.byteLength + 8);
        larger.set(value, 8);
        return larger.subarray(8);
      }),
  })),
  "cuts values at 4 MiB": mutant("values: big ones come back whole", (store) => ({
    commit(batch) {
      const cut = (value) => (value instanceof Uint8Array ? value.slice(0, 4 << 20) : value);
      store.commit({ ...batch, puts: batch.puts.map(([key, value]) => [key, cut(value)]) });
    },
  })),
  "drops rows after the 1,000th": mutant("values: many come in one batch", (store) => ({
    commit: (batch) => store.commit({ ...batch, puts: batch.puts.slice(0, 1_000) }),
  })),
  "copies values after a wait": mutant(ISOLATED, (store) => ({
    async commit(batch) {
      await null;
      store.commit(batch);
    },
  })),
  "returns the array that it keeps": mutant(ISOLATED, (store) => {
    const kept = new Map();
    return {
      read: (keys) =>
        store.read(keys).map((value, i) => {
          if (value && !kept.has(text(keys[i]))) kept.set(text(keys[i]), value);
          return value && kept.get(text(keys[i]));
        }),
      scan: (prefix, options) =>
        store.scan(prefix, options).map(([key, value]) => [key, kept.get(text(key)) ?? value]),
    };
  }),
  "tells nobody of a commit": telling({ of: () => undefined }),
  "tells of a commit that was refused": telling({ of: (sid, ver) => [sid, ver] }),
  "tells the version of before": telling({ of: (sid, ver, isWritten) => isWritten && [sid, ver - 1] }),
  "tells the whole key": telling({ of: (sid, ver, isWritten) => isWritten && [["sessions", sid], ver] }),
  "tells who does not listen any more": telling({ of: (sid, ver, isWritten) => isWritten && [sid, ver], forgets: false }),
};
