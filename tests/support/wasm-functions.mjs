/** WebAssembly modules whose functions say that they ran, or cannot run. */

const [GLOBALS, EXPORTS, CODE] = [6, 7, 10];
/** The type of a number, that of a variable, and what begins, ends and sets one. */
const [I32, MUTABLE, I32_CONST, GLOBAL_SET, UNREACHABLE, END] = [0x7f, 1, 0x41, 0x24, 0x00, 0x0b];
/** Of what is exported, a variable. */
const GLOBAL = 3;

/** The module with an export for each function, by `name` and its place, which is 1 once that ran. */
export function counting(bytes, name) {
  const sections = sectionsOf(bytes);
  const bodies = bodiesOf(sections.find(({ id }) => id === CODE));
  const own = sections.find(({ id }) => id === GLOBALS);
  const imported = importedGlobals(sections);
  const first = imported + (own ? vector(own.content).count : 0);
  const zero = Buffer.from([I32, MUTABLE, I32_CONST, 0, END]);
  const names = bodies.map((_, nth) => [...text(`${name} ${nth}`), GLOBAL, ...number(first + nth)]);
  const marked = bodies.map((body, nth) => {
    const at = localsEnd(body);
    return sized([...body.subarray(0, at), I32_CONST, 1, GLOBAL_SET, ...number(first + nth), ...body.subarray(at)]);
  });
  const added = { [GLOBALS]: longer(own, bodies.map(() => zero)), [EXPORTS]: longer(sections.find(({ id }) => id === EXPORTS), names), [CODE]: listOf(marked) };
  for (const id of [GLOBALS, EXPORTS]) {
    const behind = sections.findIndex((section) => section.id > id);
    if (!sections.some((section) => section.id === id)) sections.splice(behind, 0, { id });
  }
  return written(sections.map(({ id, content }) => ({ id, content: added[id] ?? content })));
}

/** Which functions ran, by the names of such modules and the exports of their instances. */
export function ran(instances) {
  const found = {};
  for (const [mark, { value }] of instances.flatMap((exports) => Object.entries(exports))) {
    const [, name, nth] = /^(\w+) (\d+)$/.exec(mark) ?? [];
    if (name && value === 1) (found[name] ??= []).push(Number(nth));
  }
  return found;
}

/** The module, in which all functions but those in `kept` end the program; and how many bytes the kept ones are. */
export function stubbed(bytes, kept) {
  const sections = sectionsOf(bytes);
  const keeps = new Set(kept);
  const bodies = bodiesOf(sections.find(({ id }) => id === CODE));
  const stub = sized([0, UNREACHABLE, END]);
  const all = bodies.map((body, nth) => (keeps.has(nth) ? sized(body) : stub));
  const size = bodies.reduce((sum, body, nth) => sum + (keeps.has(nth) ? body.length : 0), 0);
  return { module: written(sections.map(({ id, content }) => ({ id, content: id === CODE ? listOf(all) : content }))), functions: bodies.length, size };
}

// ---- The format --------------------------------------------------------------------------------------------------

const HEAD = 8;

function sectionsOf(bytes) {
  const sections = [];
  for (let at = HEAD; at < bytes.length; ) {
    const { value: size, next } = read(bytes, at + 1);
    sections.push({ id: bytes[at], content: bytes.subarray(next, next + size) });
    at = next + size;
  }
  return sections;
}

function written(sections) {
  const head = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  return Buffer.concat([head, ...sections.flatMap(({ id, content }) => [Buffer.from([id]), sized(content)])]);
}

function vector(content) {
  const { value: count, next } = read(content, 0);
  return { count, items: content.subarray(next) };
}

/** A section with more entries, or a new one. */
function longer(section, more) {
  const { count, items } = section ? vector(section.content) : { count: 0, items: Buffer.alloc(0) };
  return Buffer.concat([Buffer.from(number(count + more.length)), items, ...more.map((item) => Buffer.from(item))]);
}

function listOf(items) {
  return Buffer.concat([Buffer.from(number(items.length)), ...items]);
}

function bodiesOf({ content }) {
  let { value: count, next: at } = read(content, 0);
  const bodies = [];
  while (count-- > 0) {
    const { value: size, next } = read(content, at);
    bodies.push(content.subarray(next, next + size));
    at = next + size;
  }
  return bodies;
}

/** Where the instructions of a function begin. */
function localsEnd(body) {
  let { value: groups, next: at } = read(body, 0);
  // How many, and one byte for their type.
  while (groups-- > 0) at = read(body, at).next + 1;
  return at;
}

function importedGlobals(sections) {
  const module = new WebAssembly.Module(written(sections));
  return WebAssembly.Module.imports(module).filter(({ kind }) => kind === "global").length;
}

function sized(bytes) {
  return Buffer.concat([Buffer.from(number(bytes.length)), Buffer.from(bytes)]);
}

function text(value) {
  const bytes = Buffer.from(value);
  return [...number(bytes.length), ...bytes];
}

function number(value) {
  const bytes = [];
  do {
    bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>>= 7;
  } while (value > 0);
  return bytes;
}

function read(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, next: at };
  }
}
