/** What a session relies on in a store that says that it notices damage: checks of `storeConformance`. */

import type { Key } from "../types.js";
import { isDamaged } from "./keys.js";
import type { Value } from "./keys.js";
import { bytesOf, check, same, textOf } from "./probe.js";
import type { Check, Probe, Row } from "./probe.js";

/** Large enough to be kept apart, where a store keeps large values apart. */
const DAMAGED_BYTES = 300 * 1024;

/** A row of each table with one after it. */
const PAIRS: [Key, Key][] = [
  [["meta", "session", "a"], ["meta", "session", "b"]],
  [["sessions", "s"], ["sessions", "t"]],
  [["log", "s", 1], ["log", "s", 2]],
  [["blobs", "s", "b", 1], ["blobs", "s", "b", 2]],
  [["views", "s", 1], ["views", "s", 2]],
  [["jobs", "s", "j"], ["jobs", "s", "k"]],
];

export const DAMAGE_CHECKS: Record<string, Check> = {
  "damage: a damaged row is told as damaged, and costs no other": async (probe, damage) => {
    same(probe.caps.reportsDamage, true, "caps.reportsDamage");
    const value = new Uint8Array(DAMAGED_BYTES).fill(7);
    await probe.commit({ puts: PAIRS.flat().map((key): Row => [key, value]) });
    for (const [key, next] of PAIRS) await damageOf(probe, damage, key, next, value.byteLength);
  },

  "damage: a damaged row can be expected, replaced and deleted": async (probe, damage) => {
    const value = new Uint8Array(DAMAGED_BYTES).fill(7);
    for (const [key, other] of PAIRS) {
      await probe.commit({ puts: [[key, value], [other, value]] });
      await probe.commit({ puts: [[key, value]] });
      for (const damaged of [key, other]) await damage(damaged);
      await probe.refused("conflict", { expect: [{ key, version: 1 }], puts: [[key, bytesOf("late")]] });
      await probe.refused("conflict", { expect: [{ key, version: null }], puts: [[key, bytesOf("late")]] });
      await probe.commit({ expect: [{ key, version: 2 }], puts: [[key, bytesOf("whole again")]] });
      same((await probe.read([key])).map(textOf), ["whole again"], "a damaged row that was replaced");
      await probe.commit({ expect: [{ key, version: 3 }] });
      await probe.commit({ puts: [[other, bytesOf("over it")]] });
      same((await probe.read([other])).map(textOf), ["over it"], "a damaged row that was replaced, whatever it was");
      await damage(key);
      await probe.commit({ deletes: [key, other] });
      same(await probe.answers([key, other]), [undefined, undefined], "damaged rows that were deleted");
    }
  },
};

async function damageOf(probe: Probe, damage: (key: Key) => Promise<void>, key: Key, next: Key, size: number) {
  await damage(key);
  const name = JSON.stringify(key);
  const kinds = (values: (Value | undefined)[]) =>
    values.map((value) => (value === undefined ? "none" : isDamaged(value) ? "damaged" : value.byteLength));
  const reason = (await probe.answers([key])).map((value) => isDamaged(value) && value.damaged !== "");
  same(reason, [true], `${name}: a reason`);
  same(kinds(await probe.answers([next, key, next])), [size, "damaged", size], `${name}: values read`);
  const under = key.slice(0, -1);
  for (const reverse of [false, true]) {
    const found = await probe.entries(under, { reverse });
    const own = found.filter(([found]) => [key, next].some((wanted) => JSON.stringify(wanted) === JSON.stringify(found)));
    const kind = kinds(own.map(([, value]) => value));
    same(kind, reverse ? [size, "damaged"] : ["damaged", size], `${name}: values of a scan`);
  }
  const keys = (await probe.entries(under, { keysOnly: true })).map(([found]) => JSON.stringify(found));
  check(keys.includes(name), `${name} is missing among the keys`);
  await probe.commit({ puts: [[key, new Uint8Array(size)]] });
}
