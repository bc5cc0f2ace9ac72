/**
 * Hostile text and sizes through a store (fault 21), in Node and in pages: what was appended comes back
 * from a store that was closed and opened again, byte for byte: as history, behind references and their ranges, and from
 * an import of the export.
 */

/** Texts that something on the way may take for something else. */
const TEXTS = [
  "",
  " ",
  "\0",
  "a\0b",
  "a\ud800b",
  "\udc00",
  "\ud800\ud800\udc00\udc00",
  "__proto__",
  "constructor",
  "123",
  "-0",
  "1e999",
  "0x10",
  "true",
  "null",
  "undefined",
  "NaN",
  '{"a":1}',
  '{"$cc":"undefined"}',
  '["x",',
  '"',
  "\\",
  "\\u0000\\ud800",
  "line\r\nline\u2028line\u2029line\u0085",
  "\ufeffmarked",
  "$& $1 $` $' $$",
  "'; DROP TABLE log; --",
  "</conversation><message index=\"0\">",
  "Tool result is at: off_aaaaaaaaaaaaaaaaaaaaaaaaaa",
  "[redacted: api-key 1]",
  "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
  "שלום \u202eעולם\u202c مرحبا",
  "한국어 \u1112\u1161\u11ab\u1100\u1173\u11af",
  "中文，𠮷野家",
  "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 👍🏽",
  `e${"\u0301".repeat(200)}`,
];

/** A page of text with every one of them in it, again and again, of so many characters or a little more. */
function long(chars) {
  const all = TEXTS.join("|");
  return `${all}\n`.repeat(Math.ceil(chars / (all.length + 1)));
}

/** A question, a call of a tool with its result, and an answer, in OpenAI chat; more fields of the result's message. */
function exchange(nth, result, more = {}) {
  const call = { id: `call_${nth}`, type: "function", function: { name: "read", arguments: '{"path":"a"}' } };
  return [
    { role: "user", content: `Question ${nth}.` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: `call_${nth}`, content: result, ...more },
    { role: "assistant", content: `Answer ${nth}.` },
  ];
}

/** JSON of so many levels. */
function deep(levels) {
  let value = "end";
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { __proto__x: value };
  return value;
}

/** An object with keys that are something else elsewhere. */
function odd() {
  const odd = JSON.parse('{"__proto__":{"polluted":true},"constructor":null,"toString":"x","10":1,"9":2,"-1":3,"":4,"$cc":"bytes"}');
  return { ...odd, nothing: undefined, zero: -0, never: Number.NaN, far: -Infinity, at: new Date(0), bad: new Date(Number.NaN), url: new URL("a:b") };
}

const seen = new Uint8Array(1 << 20).map((_, at) => (at * 31) ^ (at >> 8));

/** What is appended, by case. `most` is the number of messages of the longest session. */
const HISTORIES = {
  "texts of every kind, said and answered": () =>
    TEXTS.flatMap((text, nth) => exchange(nth, text, { [`k${nth}`]: text, parts: [{ type: "text", text }] })),
  "long results of every kind": () => TEXTS.flatMap((text, nth) => exchange(nth, `${text}${long(2_000)}${text}`)),
  "keys and values that JSON has not": () => exchange(0, long(2_000), { odd: odd(), list: [undefined, -0, "\ud800"], seen }),
  "deep and wide": () => {
    const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, nth) => [`key ${nth}`, TEXTS[nth % TEXTS.length]]));
    const list = Array.from({ length: 10_000 }, (_, nth) => nth / 7);
    return exchange(0, long(2_000), { deep: deep(98), wide, list });
  },
  "many messages": ({ most }) =>
    Array.from({ length: most }, (_, nth) => ({
      role: nth % 2 ? "assistant" : "user",
      content: `${nth} ${TEXTS[nth % TEXTS.length]}`,
    })),
};

/** Sizes of one tool result, in characters. Those above `LARGEST` take their time, and are asked for with `large`. */
const SIZES = [(1 << 20) + 1, 3_000_000, 16_000_000];
const LARGEST = 2 << 20;

/** A result of 64 MB in UTF-8. Halves of surrogate pairs are not in it: with them, the codec would take more than a message may. */
function largest() {
  const all = `${TEXTS.filter((text) => !/\p{Surrogate}/u.test(text)).join("|")}\n`;
  return all.repeat(Math.ceil(64_000_000 / new TextEncoder().encode(all).length));
}

/** Offloads every result that is not among the last messages, and summarises nothing. */
const EAGER = { contextWindow: 1_000_000_000, compactAt: { tokens: 1 }, advanced: { offload: { scanFraction: 1 }, minOffloadGain: 1 } };

/** The first place at which two values differ, down to the sign of zero and the order of keys; `undefined` for none. */
function difference(one, other, path = "") {
  if (Object.is(one, other)) return undefined;
  const differs = `${path || "the whole"} differs`;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return differs;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return differs;
  if (one instanceof Date) return Object.is(one.getTime(), other.getTime()) ? undefined : differs;
  if (one instanceof URL) return one.href === other.href ? undefined : differs;
  const [keys, others] = [Object.keys(one), Object.keys(other)];
  if (keys.length !== others.length || keys.some((key, at) => key !== others[at])) return `the keys of ${path} differ`;
  for (const key of keys) {
    const found = difference(one[key], other[key], `${path}.${key}`);
    if (found) return found;
  }
  return undefined;
}

function same(one, other, what) {
  const found = difference(one, other);
  if (found) throw new Error(`${what}: ${found}`);
}

async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** What the engine shows of a text: a lone surrogate is none of Unicode's characters. */
const shown = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/** The references of a session hold the texts of the results that they stand for, whole and in ranges. */
async function checkReferences(session, messages, what) {
  let count = 0;
  for (const { index, ref } of (await session.context.explain())) {
    if (!ref) continue;
    count++;
    const text = shown(messages[index].content);
    const read = await session.recall.read(ref);
    if (read !== text) throw new Error(`${what}: the text of message ${index} differs`);
    // Ranges are of characters, and end where a reader sees one end; one after the other they are the text.
    const characters = [...text];
    for (const from of [0, Math.floor(characters.length / 2), Math.max(0, characters.length - 5_000)]) {
      let offset = from;
      for (let parts = 0; parts < 3 && offset < characters.length; parts++) {
        const part = await session.recall.read(ref, { offset, limit: 1_999 });
        const length = [...part].length;
        if (length === 0 || part !== characters.slice(offset, offset + length).join("")) {
          throw new Error(`${what}: the range of message ${index} from ${offset} differs`);
        }
        offset += length;
      }
    }
  }
  return count;
}

async function roundTrip({ openSession, importSession }, open, name, messages, { references }) {
  let store = await open(name);
  let session = await openSession({ id: name, format: "openai-chat", store, ...EAGER });
  await session.append(...messages);
  await session.prepare();
  const count = await checkReferences(session, messages, "before closing");
  if (references && count === 0) throw new Error("nothing was offloaded");
  await session.close();
  await store.close?.();

  store = await open(name);
  session = await openSession({ id: name, store, ...EAGER });
  same(await all(session.archive.history()), messages, "the history");
  if ((await checkReferences(session, messages, "after closing")) !== count) throw new Error("references are gone");
  const { appended, branchedAt } = await session.sync(messages);
  if (appended !== 0 || branchedAt !== undefined) throw new Error(`sync appended ${appended}, branched at ${branchedAt}`);

  const copyStore = await open(`${name}, a copy`);
  const copy = await importSession(session.archive.jsonl(), { id: "copy", store: copyStore, ...EAGER });
  same(await all(copy.archive.history()), messages, "the history of an import");
  if ((await checkReferences(copy, messages, "of an import")) !== count) throw new Error("an import has other references");
  await copy.close();
  await copyStore.close?.();
  await session.close();
  await store.close?.();
  if ({}.polluted !== undefined) throw new Error("Object.prototype was changed");
}

/**
 * Cases `{ name, run() }` for a store. `open(name)` opens the store of that name, with what was written into it when it
 * was open before. `library` is the package; `most` the messages of the longest session, `large` the largest sizes too.
 */
export function hostileCases(library, open, { most = 10_000, large = false } = {}) {
  const histories = Object.entries(HISTORIES).map(([name, make]) => ({
    name,
    run: () => roundTrip(library, open, name, make({ most }), { references: name !== "many messages" }),
  }));
  const results = SIZES.filter((chars) => large || chars <= LARGEST).map((chars) => {
    const make = () => long(1_000).repeat(Math.ceil(chars / long(1_000).length)).slice(0, chars);
    return [`one result of ${chars} characters`, make];
  });
  if (large) results.push(["one result of 64 MB", largest]);
  const sizes = results.map(([name, result]) => {
    const talk = () => Array.from({ length: 8 }, (_, nth) => ({ role: nth % 2 ? "assistant" : "user", content: `${nth}` }));
    return {
      name,
      run: () => roundTrip(library, open, name, [...exchange(0, result()), ...talk()], { references: true }),
    };
  });
  const name = "what cannot be kept is refused, and nothing of the call is written";
  const refused = {
    name,
    async run() {
      const store = await open(name);
      const session = await library.openSession({ id: "s", store });
      const bad = [{ role: "user", content: "x", ["\ud800"]: 1 }, { role: "user", content: "x", deep: deep(200) }];
      for (const [nth, message] of bad.entries()) {
        const error = await session.append({ role: "user", content: "before" }, message).then(
          () => undefined,
          (error) => error,
        );
        if (error?.code !== "unsupported_value" || error.index !== 1) throw new Error(`${nth}: ${error?.code} at ${error?.index}`);
      }
      if ((await all(session.archive.history())).length !== 0) throw new Error("something was written");
      await session.close();
      await store.close?.();
    },
  };
  return [...histories, ...sizes, refused];
}
