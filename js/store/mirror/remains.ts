/** What can still be read of two copies, for `salvage`: neither of them is written to. */

import { CompactionError } from "../../errors.js";
import type { Key, Store } from "../../types.js";
import { isDamaged } from "../keys.js";
import type { ScanOptions, Value } from "../keys.js";
import { isLost } from "./rows.js";

type Scan = (store: Store, prefix: Key, options: ScanOptions) => Promise<[Key, Value][]>;

/** The rows of `first`, or of `second` where that cannot be read or has none; what one of them has damaged, as the other has it. */
export async function remainsOf(first: Store, second: Store, scan: Scan): Promise<Store> {
  const found: Store[] = [];
  const reasons: unknown[] = [];
  for (const store of [first, second]) {
    try {
      const remains = (await store.remains?.()) ?? store;
      const sessions = await remains.scan(["log"], { limit: 1, maxBytes: 1, keysOnly: true });
      if (sessions.length > 0) found.push(remains);
    } catch (error) {
      reasons.push(error);
    }
  }
  const [one, other] = found;
  if (!one && reasons.length > 0) throw reasons[0];
  const shown = one ?? first;
  const read = async (keys: Key[]) => {
    const values = await shown.read(keys);
    const lost = keys.filter((_, i) => isLost(values[i]));
    const others = lost.length > 0 && other ? await other.read(lost) : [];
    return values.map((value, i) => {
      const instead = others[lost.indexOf(keys[i]!)];
      return isLost(value) && !isLost(instead) ? instead : value;
    });
  };
  return {
    caps: { ...shown.caps, durable: "none" },
    read,
    async scan(prefix, options) {
      const rows = await scan(shown, prefix, options);
      const values = await read(rows.filter(([, value]) => isDamaged(value)).map(([key]) => key));
      return rows.map(([key, value]) => [key, isDamaged(value) ? values.shift()! : value]);
    },
    commit() {
      throw new CompactionError("store_unavailable", "This is read only: import the archives into another store");
    },
    ...(shown.dataLoss && { dataLoss: () => shown.dataLoss!() }),
  };
}
