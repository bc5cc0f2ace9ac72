/**
 * Tasks of many steps, from a seed. Each step brings material of real size in which hardly anything matters, and asks for
 * values that follow from others: what earlier material, the user or the agent itself said, near and far back.
 */

import { estimateTokens } from "context-compactor/tokens";
import { generator } from "../../tests/support/random.mjs";
import { evaluate, parse } from "./steps.mjs";

const WORDS = (
  "amber anchor basin beacon birch bishop bramble canal carbon cedar cinder clover cobalt copper coral crane delta ember fennel " +
  "flint garnet glacier granite harbor hazel heron hollow indigo iris ivory jasper juniper kelp lantern larch linden lotus maple " +
  "marble meadow mercury mica nectar nettle oasis olive onyx opal orchid otter pebble pepper poplar quartz raven ridge saffron " +
  "sable spruce sumac tamarack thistle timber topaz umber velvet walnut willow yarrow zephyr"
).split(" ");

/**
 * What the kinds differ in. `noise` is a line that never matters. `first` is what the user begins with, `facts` what the
 * material of a step states, `asks` what the step asks for, `said` what the user says before it.
 */
const KINDS = {
  ledger: {
    request: "Post the bank's entries to our ledger, one after the other, and keep every balance exact.",
    tools: ["read_statement", "post_entry"],
    first: ({ random }) => WORDS.slice(0, 12).map((name) => [`${name} balance after entry 0`, 20_000 + random(9_000)]),
    facts: ({ random, number }) => [[`amount of invoice INV-${1_000 + number * 7}`, 10 + random(900)]],
    asks: ({ random, number, pick }) => {
      const from = random(12);
      const [one, other] = [WORDS[from], WORDS[(from + 1 + random(11)) % 12]];
      const amount = pick(/^amount/);
      const after = `balance after entry ${number}`;
      return `${one} ${after} = {${one} balance} minus {${amount}}; ${other} ${after} = {${other} balance} plus {${amount}}`;
    },
    noise: (random, word) =>
      [
        `2031-0${1 + random(9)}-1${random(10)}  ref ${random(1e8)}  transfer ${word()} & ${word()} Ltd  ${random(9_000)}.${10 + random(90)} EUR`,
        `2031-0${1 + random(9)}-0${1 + random(9)}  card ${random(1e4)}  ${word()} market, ${word()} street  -${random(300)}.${10 + random(90)} EUR`,
        `  balance of the day carried to sheet ${random(400)}: ${random(90_000)}.${10 + random(90)} EUR (value date 2031-0${1 + random(9)}-2${random(9)})`,
        `  amount of order ${random(9_000)}-${word()}: ${random(2_000)}, not ours, see notice ${random(1e5)}`,
      ][random(4)],
  },
  rename: {
    request: "Give the functions of this project their new names, file by file, and then mend the imports.",
    tools: ["read_file", "edit_file"],
    facts: ({ random, number, word }) => [[`tag of src/${WORDS[number % WORDS.length]}/part${number}.ts`, `${word()}${random(90)}`]],
    asks: ({ number, pick, word }) => {
      const old = `${word()}_${word()}_${number}`;
      if (number % 2 === 1 || number < 4) return `new name of ${old} = {${pick(/^tag/)}} then ${old}`;
      return `imports of src/use${number}.ts = {${pick(/^new name/)}} then {${pick(/^new name/)}}`;
    },
    noise: (random, word) =>
      [
        `  const ${word()} = await ${word()}_${word()}(${word()}.${word()}, { limit: ${random(500)} });`,
        `import { ${word()}_${word()}, ${word()} } from "../${word()}/part${random(400)}.js";`,
        `  if (${word()}.${word()} !== ${random(64)}) throw new Error("${word()} of ${word()} is ${random(1e4)}");`,
        `/** The ${word()} of a ${word()}, ${random(90)} at most; see src/${word()}/part${random(400)}.ts. */`,
        `  return { ${word()}: ${word()} ?? ${random(1e3)}, ${word()}: [${random(99)}, ${random(99)}] };`,
      ][random(5)],
  },
  form: {
    request: "Help me to fill in the application, field by field. I tell you what I know as we go on.",
    tools: ["open_page", "fill_field"],
    said: ({ random, number }) => [[`my ${WORDS[number % WORDS.length]} ${["code", "number", "locker", "quota"][Math.floor(number / WORDS.length)]}`, 1_000 + random(9_000)]],
    facts: ({ random, number }) => [[`fee of section ${number}`, 10 + random(500)]],
    asks: ({ number, pick }) => `field ${number} = {${pick(/^my/)}} plus {${pick(number < 4 ? /^fee/ : /^(fee|field)/)}}`,
    noise: (random, word) =>
      [
        `The applicant declares that the ${word()} and the ${word()} named under ${random(90)} (${word()}) are complete to the best of their knowledge.`,
        `Section ${random(90)}.${random(20)}: where a ${word()} was granted before 20${10 + random(20)}, enclose form ${random(900)}-${word()} in two copies.`,
        `Fees of ${random(400)} EUR are due within ${random(60)} days of the ${word()} notice, number ${random(1e6)}.`,
        `Do not write in this column: ${random(1e5)} / ${word()} / ${random(1e3)}.`,
      ][random(4)],
  },
  maze: {
    request: "Find the way through the house. Each door opens with a number that follows from what you have seen.",
    tools: ["enter_room", "open_door"],
    facts: ({ random, number }) => [0, 29].map((at) => [`mark of the ${WORDS[(number + at) % WORDS.length]} in room ${number}`, 100 + random(9_000)]),
    asks: ({ number, pick }) => `door ${number} = {${pick(/^mark/)}} plus {${pick(number < 3 ? /^mark/ : /^(mark|door)/)}}`,
    noise: (random, word) =>
      [
        `A ${word()} lamp stands beside the ${word()} cabinet; its drawer ${random(40)} holds ${random(90)} ${word()} tokens.`,
        `On the wall hangs a plate: mark of the ${word()} in hall ${random(90)}: ${random(9_000)}.`,
        `The ${word()} carpet has ${random(300)} knots, and somebody wrote ${random(1e5)} on its edge.`,
        `Behind the ${word()} curtain a door of ${word()} wood, number ${random(1e4)}, is painted on the wall.`,
      ][random(4)],
  },
};

export const kinds = Object.keys(KINDS);

/** A task of `count` steps with about `tokens` tokens of material in each; `needed` are the lines that tell all that it takes. */
export function generate(kind, count, tokens, seed) {
  const { request, tools, first, said, facts, asks, noise } = KINDS[kind];
  const random = generator(seed);
  const word = () => WORDS[random(WORDS.length)];
  /** All that can be known, what came last at the end. */
  const known = new Map();
  const needed = new Set();
  const pick = (kind) => {
    const of = [...known.keys()].filter((label) => kind.test(label));
    // A third of what is needed was told just now.
    return random(3) === 0 ? of.at(-1 - random(Math.min(3, of.length))) : of[random(of.length)];
  };
  const tell = (stated) => {
    // What changes is known by the label without its entry.
    for (const [label, value] of stated) known.set(label.replace(/ after entry \d+$/, ""), String(value));
    return stated.map(([label, value]) => `${label}: ${value}`);
  };
  const openings = tell(first?.({ random }) ?? []);
  const steps = Array.from({ length: count }, (_, at) => {
    const about = { random, word, pick, number: at + 1 };
    const sentences = tell(said?.(about) ?? []).map((sentence) => `By the way, ${sentence.replace(":", " is")}.`);
    const stated = tell(facts(about));
    const asked = asks(about);
    const valueOf = (label) => {
      needed.add(`${label}: ${known.get(label)}`);
      return known.get(label);
    };
    const right = parse(asked).map(({ name, terms }) => [name, evaluate(terms, valueOf)]);
    tell(right);
    const lines = [];
    for (let sum = 0; sum < tokens; sum += estimateTokens(lines.at(-1))) lines.push(noise(random, word));
    for (const line of stated) lines.splice(random(lines.length), 0, line);
    return { number: at + 1, said: sentences.join(" "), asked, right, material: lines.join("\n") };
  });
  return { kind, tools, first: [request, ...openings].join("\n"), isTold: Boolean(said), steps, needed: [...needed] };
}
