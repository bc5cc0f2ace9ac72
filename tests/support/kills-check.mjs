/** What writers were told, and whether a session that was opened again is what they were told. */

import { messagesOf } from "./writer.mjs";

/** Everything here is JSON, and comes back with its fields in the order that they had. */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Codes after which a batch may have been written; any other says that it was not. */
const UNKNOWN = ["indeterminate", "none"];

/** What the writers of one session were told, kept where no kill reaches it. */
export class Told {
  /** Calls of `append` in the order of their acknowledgements: `{ call, since }`, and `since` that many others. */
  acked = [];
  /** Codes of the calls that were refused, by their names. */
  refused = new Map();
  /** Summaries that were asked for, by their marks; what is known of each: `asked`, `compacted`, `aborted` before there was
   *  an answer, or `kept`: what a later call may use, as the answer is kept until it is committed. */
  marks = new Map();
  checkpoints = [];
  aborted = 0;
  /** Commits that lost a race, by writer. */
  conflicts = new Map();
  stop = false;
  /** Who was refused waits for it. */
  pause = undefined;
  broken = undefined;
  /** What the browser says it lost when it began the database anew, when it did. */
  reset = undefined;
  /** What sessions said that the platform took, and how many calls were acknowledged by then. */
  losses = [];

  /** Handlers of what is posted, for `serve`. `told()` is the one of the session that is written to now. */
  static posts(told) {
    const now = () => ({ acked: told().acked.length, stop: told().stop });
    const noting = (note) => (body) => {
      told().raced(body);
      note(told(), body);
      return now();
    };
    return {
      "/moment": async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return now();
      },
      "/asked": async ({ mark }) => {
        told().marks.set(mark, "asked");
        await new Promise((resolve) => setTimeout(resolve, 5));
        return now();
      },
      "/acked": noting((told, { call, since }) => told.acked.push({ call, since })),
      "/refused": async (body) => {
        noting((told, { call, code }) => told.refused.set(call, code))(body);
        await told().pause;
        return now();
      },
      "/compacted": noting((told, { mark, checkpoint }) => {
        told.marks.set(mark, "compacted");
        told.checkpoints.push(checkpoint);
      }),
      "/kept": noting((told, { mark, code }) => {
        if (code === "aborted") told.aborted++;
        if (mark && !UNKNOWN.includes(code)) told.marks.set(mark, code === "aborted" ? code : "kept");
      }),
      "/loss": noting((told, { kind, reason }) => told.losses.push({ kind, reason, acked: told.acked.length })),
      "/reset": ({ dataLoss }) => void (told().reset = dataLoss),
      "/broken": (error) => void (told().broken = error),
    };
  }

  raced({ call, mark, conflicts }) {
    const writer = (call ?? mark)?.split("/", 2).join("/");
    if (writer) this.conflicts.set(writer, conflicts);
  }

  /** Waits for so many more acknowledgements. */
  async more(count, within = 90_000) {
    const wanted = this.acked.length + count;
    for (const until = Date.now() + within; this.acked.length < wanted; ) {
      if (this.broken) throw new Error(`a writer ended: ${this.broken}`);
      if (Date.now() > until) throw new Error(`${wanted - this.acked.length} of ${count} calls are not acknowledged`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  counts() {
    const sum = (numbers) => [...numbers].reduce((sum, number) => sum + number, 0);
    return {
      calls: this.acked.length,
      "acknowledged messages": sum(this.acked.map(({ call }) => messagesOf(call).length)),
      compactions: [...this.marks.values()].filter((state) => state === "compacted").length,
      aborted: this.aborted,
      races: sum(this.conflicts.values()),
    };
  }
}

/**
 * Holds `found` (of `read`) against what was `told`. Returns the problems by their kinds: `lost`, `torn`, `dangling`; in
 * `unknown` how many calls were written without an acknowledgement, in `references` how many were read. `leaves` says
 * that messages may have left the context.
 */
export function check(found, told, { leaves = false } = {}) {
  const problems = { lost: [], torn: [], dangling: [] };
  const { unknown } = checkLog(found, told, problems);
  checkCompactions(found, told, problems);
  checkContext(found, leaves, problems);
  // Nothing may go without a word, and no word without a loss. What was mended is none.
  const said = [...told.losses, ...found.losses].filter(({ kind }) => kind !== "repaired");
  if (problems.lost.length === 0 && said.length > 0) problems.torn.push(`nothing is lost, and it said: ${said[0].reason}`);
  if (found.verified && !found.verified.ok) problems.torn.push(...found.verified.problems.map(String));
  return { problems, unknown, references: Object.keys(found.texts).length };
}

/** Every acknowledged call is stored once, whole, word for word and in order; of the others at most the one under way. */
function checkLog({ history }, told, { lost, torn }) {
  /** Where the first message of each call stands. */
  const places = new Map();
  for (let at = 0; at < history.length; ) {
    const call = nameIn(history[at]);
    const messages = call ? messagesOf(call) : [];
    if (messages.length === 0 || !same(history.slice(at, at + messages.length), messages)) {
      torn.push(`message ${at} is not the first of a whole call: ${JSON.stringify(history[at]).slice(0, 200)}`);
      at++;
      continue;
    }
    if (places.has(call)) torn.push(`${call} is stored twice`);
    places.set(call, at);
    at += messages.length;
  }
  let last = -1;
  /** The last place of the first n acknowledged calls. */
  const until = [last];
  for (const { call, since } of told.acked) {
    const at = places.get(call);
    if (at === undefined) lost.push(`${call} was acknowledged and is not there`);
    else if (at < until[since]) torn.push(`${call} stands before what was acknowledged before it began`);
    last = Math.max(last, at ?? -1);
    until.push(last);
  }
  const acked = new Set(told.acked.map(({ call }) => call));
  const underWay = new Set();
  let unknown = 0;
  for (const call of places.keys()) {
    if (acked.has(call)) continue;
    unknown++;
    const code = told.refused.get(call);
    if (UNKNOWN.includes(code)) continue;
    if (code) torn.push(`${call} was refused (${code}) and is there`);
    const writer = call.slice(0, call.lastIndexOf("/"));
    // The answer to one call of each writer was on its way when it was killed.
    if (underWay.has(writer)) torn.push(`${call} is there, its writer was told of no answer to two calls`);
    underWay.add(writer);
  }
  return { unknown };
}

/** The call that a message of the user names as its own. */
function nameIn({ role, content }) {
  return role === "user" ? content.match(/\[([^\]]+)\]/)?.[1] : undefined;
}

/** What was acknowledged took place, what was aborted did not, and nobody made up another. */
function checkCompactions({ marks, checkpoints }, told, { lost, torn }) {
  for (const [mark, state] of told.marks) {
    if (state === "compacted" && !marks.includes(mark)) lost.push(`compaction ${mark} was acknowledged and is not there`);
    if (state === "aborted" && marks.includes(mark)) torn.push(`compaction ${mark} was aborted and is there`);
  }
  for (const mark of marks) if (!told.marks.has(mark)) torn.push(`nobody was asked for ${mark}`);
  for (const id of told.checkpoints) {
    const times = checkpoints.filter((known) => known === id).length;
    if (times !== 1) lost.push(`checkpoint ${id} was acknowledged and is there ${times} times`);
  }
}

/** What may stand for a result beside its bare reference: the reference, and how the result begins, or also ends. */
const PREVIEWS = [
  /^Output too large\. Saved to: (off_\w+)\nPreview:\n/,
  /^Too large to stand here \(\d+ characters\)\. All of it is at: (off_\w+)\nIt begins:\n/,
];

/** One fate for each message; the context is a summary and all that it does not stand for; every reference is its text. */
function checkContext({ messages, ledger, texts, history }, leaves, { torn, dangling }) {
  if (!same(ledger.map(({ index }) => index), [...history.keys()])) {
    torn.push(`${ledger.length} fates for ${history.length} messages`);
    return;
  }
  for (const { index, ref, fate } of ledger) {
    if (fate === "offloaded" && !ref) dangling.push(`message ${index} is offloaded to nowhere`);
    if (ref && texts[ref] !== history[index].content) dangling.push(`${ref} is not the text of message ${index}`);
  }
  const gone = leaves ? ["summarized", "dropped"] : ["summarized"];
  const standing = ledger.filter(({ fate }) => !gone.includes(fate));
  // A summary, with an answer behind it or a question before it where the order of roles needs one.
  const ours = messages.slice(0, Math.max(0, messages.length - standing.length));
  const isSummarised = ledger.some(({ fate }) => fate === "summarized");
  const summaries = ours.filter(({ content }) => /mark \d+;/.test(content));
  if (isSummarised ? summaries.length !== 1 || ours.length > 2 : ours.length !== 0) {
    const seen = `${messages.map(({ role }) => role)}; ${ledger.map(({ fate }) => fate)}; ${JSON.stringify(ours)}`;
    torn.push(`${messages.length} messages in the context, ${standing.length} of them from the log: ${seen}`);
    return;
  }
  for (const [nth, { index, fate, ref }] of standing.entries()) {
    const found = messages[nth + ours.length];
    const plain = `Tool result is at: ${ref}`;
    const isPreview = PREVIEWS.some((told) => told.exec(found?.content)?.[1] === ref);
    const content = isPreview ? found.content : plain;
    const wanted = fate === "offloaded" ? { ...history[index], content } : history[index];
    if (!same(found, wanted)) torn.push(`message ${index} (${fate}) is not in its place`);
  }
}
