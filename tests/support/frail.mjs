/** A store in memory whose rows can be changed at rest: their versions stay, as they do where a disk goes bad. */

const text = (key) => JSON.stringify(key);

/** `memory` with `change(key, value)`: `value` is what is found under the key from now on, bytes or `{ damaged }`, until it
 *  is written again. */
export function frail(memory) {
  const changed = new Map();
  const found = (key, value) => (value !== undefined && changed.has(text(key)) ? changed.get(text(key)) : value);
  const copy = (value) => (value instanceof Uint8Array ? value.slice() : value);
  return {
    caps: { ...memory.caps, reportsDamage: true },
    read: (keys) => memory.read(keys).map((value, i) => copy(found(keys[i], value))),
    scan: (prefix, options) =>
      memory.scan(prefix, options).map(([key, value]) => [key, options.keysOnly ? value : copy(found(key, value))]),
    commit(batch) {
      memory.commit(batch);
      for (const key of [...batch.puts.map(([key]) => key), ...batch.deletes]) changed.delete(text(key));
    },
    change: (key, value) => void changed.set(text(key), value),
    /** Changes a bit in the middle of a row, or at `at`, from its end where that is negative. */
    flip(key, at) {
      const value = copy(found(key, memory.read([key])[0]));
      value[at === undefined ? value.length >> 1 : (at + value.length) % value.length] ^= 1;
      changed.set(text(key), value);
    },
    report: (key) => void changed.set(text(key), { damaged: "its checksum differs" }),
    /** Everything that is damaged is whole again. */
    heal: () => changed.clear(),
  };
}
