/** The stores of `js/store` as places of a simulated world, each with what may go wrong there. */

import { Disk } from "./sim-disk.mjs";
import { Browser } from "./sim-indexeddb.mjs";
import { Sqlite } from "./sim-sqlite.mjs";

/** Values so small that sessions of a few messages have some of every kind: parts, and objects of the bucket. */
export const SMALL = [
  { file: "durable/objects.ts", from: "export const BIG_BYTES = 256 * 1024;", to: "export const BIG_BYTES = 1_500;" },
  { file: "durable/tables.ts", from: "const INLINE_BYTES = 64 * 1024;", to: "const INLINE_BYTES = 300;" },
  { file: "durable/parts.ts", from: "const PART_BYTES = 1024 * 1024;", to: "const PART_BYTES = 400;" },
];

const encryptionKey = await crypto.subtle.importKey("raw", new Uint8Array(32).fill(7), "AES-GCM", false, ["encrypt", "decrypt"]);

/** What is never answered. */
const never = () => new Promise(() => {});

/** What a process makes of `open`, as long as it lives: the package goes on when a process is dead. */
function alive(owner, open) {
  const store = open();
  const calls = ["read", "scan", "commit", "dataLoss", "close"].filter((name) => name in store);
  return {
    ...store,
    get caps() {
      return store.caps;
    },
    ...Object.fromEntries(calls.map((name) => [name, (...args) => (owner.dead ? never() : store[name](...args))])),
  };
}

/** What is kept of sessions outside of the store. */
function watermarkOf(owner, { get, set }) {
  return { get, set: (key, value) => void (owner.dead || set(key, value)) };
}

function started(program, world, host, make, options) {
  const { owner, stores } = program.start(world, host);
  return { owner, stores, store: () => alive(owner, () => make(stores, owner)), options: options(owner) };
}

function file(world, program, isEncrypted) {
  const disk = new Disk(world);
  const marks = new Map();
  const rewriteBytes = world.pick([2_000, 8_000, 16 * 1024 * 1024]);
  const make = ({ fileStore, encryptedStore }) => {
    const plain = fileStore("/store", { rewriteBytes });
    return isEncrypted ? encryptedStore(plain, { encryptionKey }) : plain;
  };
  const options = (owner) => ({ advanced: { watermark: watermarkOf(owner, { get: (key) => marks.get(key), set: (key, value) => marks.set(key, value) }) } });
  return { medium: disk, pace: 300, start: () => started(program, world, disk, make, options), cut: () => disk.cut() };
}

/** One object is one process, whoever calls it. What the platform has confirmed, it has without power, too. */
function durable(world, program, isEncrypted) {
  const sqlite = new Sqlite(world);
  const marks = new Map();
  const hasBucket = world.one(2);
  const make = ({ durableObjectStore, encryptedStore }, owner) => {
    const { ctx, bucket } = sqlite.of(owner);
    const plain = durableObjectStore(ctx, hasBucket ? { bigObjects: bucket } : {});
    return isEncrypted ? encryptedStore(plain, { encryptionKey }) : plain;
  };
  const options = (owner) => ({ advanced: { watermark: watermarkOf(owner, { get: (key) => marks.get(key), set: (key, value) => marks.set(key, value) }) } });
  const start = () => {
    const process = started(program, world, {}, make, options);
    process.owner.ends.push(() => sqlite.end());
    return process;
  };
  return { medium: sqlite, pace: isEncrypted ? 60 : 15, isAlone: true, start, cut: () => {} };
}

function indexedDb(world, program, isEncrypted) {
  const browser = new Browser(world);
  const make = ({ indexedDbStore }) => indexedDbStore(isEncrypted ? { encryptionKey } : {});
  // As the package does it, where it finds `localStorage`.
  const options = (owner) => {
    const { localStorage } = browser.globals(owner);
    return { advanced: { watermark: watermarkOf(owner, { get: (key) => localStorage.getItem(key), set: (key, value) => localStorage.setItem(key, value) }) } };
  };
  const start = () => {
    const process = started(program, world, browser, make, options);
    process.owner.ends.push(() => browser.leave(process.owner));
    return process;
  };
  return { medium: browser, pace: 300, losesMarks: true, start, cut: () => browser.cut() };
}

const of = (make, isEncrypted) => (world, program) => make(world, program, isEncrypted);

/** Each makes an empty place. In `pace` ms of the world there is about a life. */
export const places = {
  file: of(file, false),
  "file, encrypted": of(file, true),
  durable: of(durable, false),
  "durable, encrypted": of(durable, true),
  indexeddb: of(indexedDb, false),
  "indexeddb, encrypted": of(indexedDb, true),
};
