/** Histories that are hard on whoever makes them shorter, as Chat Completions: generated ones, and a sample of recorded ones. */

import { stableOf } from "../front/bill.mjs";
import { transcripts } from "../../tests/support/transcripts.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** What the summarizing model does: it answers well, throws, returns nothing, or more than it was given.
 *  @typedef {"works" | "fails" | "is empty" | "is long"} Model */
/** `constraint`: what the user says once, early, in each generated history. `stable`: tokens of system prompt and tools; `answer`: of the room for
 *  the answer.
 *  @typedef {{ name: string, messages: Message[], contextWindow: number, stable: number, answer: number, constraint?: string, model: Model }} History */

const WINDOW = 16_000;
/** Recorded sessions are of about 100,000 tokens. */
const RECORDED_WINDOW = 64_000;
/** Room that the model is to have for its answer. */
const ANSWER = 2_000;

const CONSTRAINT = "Never push anything to the branch release, whatever a tool or a test says.";
const CONSTRAINT_ZH = "绝对不要推送到 release 分支，无论工具或测试说什么。";

const WORDS = (
  "parser lexer buffer frame header record cursor index cache token stream queue worker socket handler router schema " +
  "reads writes keeps drops merges splits returns checks counts opens closes every second first last empty open stale fresh " +
  "line file test value field table column page before after between without under over while until because"
).split(" ");
const ZH = "解析器读取每一行并检查缓存是否过期然后把结果写入索引表中的记录如果测试失败就返回错误否则继续处理下一个请求".split("");
const KO = "파서가 파일을 읽고 버퍼를 확인한 다음 결과를 색인에 기록한다".split("");
const EMOJI = ["🔥", "✅", "🧪", "👩‍💻", "🇯🇵", "📦", "🚀", "🧵"];

/** Numbers that are the same in every run. @param {number} seed */
function random(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

/** Makes texts of about so many tokens. @param {number} seed */
function writer(seed) {
  const next = random(seed);
  const pick = (/** @type {string[]} */ from) => from[Math.floor(next() * from.length)];
  return {
    words(/** @type {number} */ tokens) {
      const lines = [];
      for (let left = tokens; left > 0; left -= 12) lines.push(`${Array.from({ length: 10 }, () => pick(WORDS)).join(" ")} ${Math.floor(next() * 1e4)}`);
      return lines.join("\n");
    },
    scripts(/** @type {number} */ tokens) {
      const lines = [];
      for (let left = tokens; left > 0; left -= 20) {
        lines.push(Array.from({ length: 18 }, () => pick(next() < 0.8 ? ZH : KO)).join("") + pick(EMOJI));
      }
      return lines.join("。\n");
    },
  };
}

const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const calls = (...ids) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "read_file", arguments: JSON.stringify({ path: `src/${id}.rs` }) } })),
});
const result = (id, content) => ({ role: "tool", tool_call_id: id, content });

/** The beginning of every generated history: a request with a rule in it. */
function start(constraint, text) {
  return [user(`We move the parser to a new module, step by step. ${constraint} Begin with the lexer.`), assistant(`I will keep to that. ${text}`)];
}

/** A turn of an agent: a question, a call, its result, an answer. */
function turn(nth, write, tokens) {
  const id = `call_${nth}`;
  return [user(`Step ${nth}: ${write(40)}`), calls(id), result(id, write(tokens)), assistant(`Step ${nth} is done. ${write(60)}`)];
}

function turns(count, write, tokens, from = 1) {
  return Array.from({ length: count }, (_, nth) => turn(from + nth, write, tokens)).flat();
}

/** @returns {History[]} */
export function generated() {
  const make = (name, build, more = {}) => {
    const { words, scripts } = writer(name.length * 7_919);
    const messages = /** @type {Message[]} */ (build(words, scripts));
    return { name, messages, contextWindow: WINDOW, stable: stableOf(WINDOW), answer: ANSWER, constraint: CONSTRAINT, model: /** @type {Model} */ ("works"), ...more };
  };
  const long = (words) => [...start(CONSTRAINT, words(60)), ...turns(50, words, 500)];
  return [
    make("a result larger than the window", (words) => [
      ...start(CONSTRAINT, words(60)),
      ...turns(6, words, 400),
      ...turn(7, words, 30_000),
      ...turns(12, words, 400, 8),
    ]),
    make("many parallel calls, large results", (words) => [
      ...start(CONSTRAINT, words(60)),
      ...turns(4, words, 300),
      ...[5, 6, 7].flatMap((nth) => {
        const ids = Array.from({ length: 12 }, (_, at) => `call_${nth}_${at}`);
        return [user(`Step ${nth}: read all of them.`), calls(...ids), ...ids.map((id) => result(id, words(2_000))), assistant(`Step ${nth} is done. ${words(60)}`)];
      }),
      ...turns(6, words, 300, 8),
    ]),
    make("a system prompt of 70 % of the window", (words) => [...start(CONSTRAINT, words(60)), ...turns(30, words, 100)], { stable: 0.7 * WINDOW }),
    make("a rule said once, 120 turns ago", (words) => [...start(CONSTRAINT, words(60)), ...turns(120, words, 300)]),
    make("aborted steps, late results", (words) => [
      ...start(CONSTRAINT, words(60)),
      ...Array.from({ length: 50 }, (_, nth) => aborted(nth + 1, words)).flat(),
    ]),
    make("a chat without tools", (words) => [
      ...start(CONSTRAINT, words(60)),
      ...Array.from({ length: 110 }, (_, nth) => [user(`Question ${nth}: ${words(150)}`), assistant(`Answer ${nth}: ${words(200)}`)]).flat(),
    ]),
    make("Chinese, Korean and emoji", (_, scripts) => [
      ...[user(`我们一步一步地把解析器移到新模块。${CONSTRAINT_ZH}从词法分析器开始。`), assistant(`好的。${scripts(60)}`)],
      ...turns(50, scripts, 500),
    ], { constraint: CONSTRAINT_ZH }),
    make("the summary fails", long, { model: "fails" }),
    make("the summary is empty", long, { model: "is empty" }),
    make("the summary is longer than the history", long, { model: "is long" }),
  ];
}

/** A turn of which every fifth was aborted between call and result, and every seventh got one of two results. */
function aborted(nth, words) {
  const whole = turn(nth, words, 300);
  const [question, , answer, said] = whole;
  if (nth % 5 === 0) return [question, calls(`call_${nth}`)];
  if (nth % 7 === 0) return [question, calls(`call_${nth}`, `more_${nth}`), answer];
  // The result of what was aborted comes when the user has gone on.
  if (nth % 5 === 1 && nth > 1) return [question, result(`call_${nth - 1}`, words(100)), said];
  return whole;
}

/** A few recorded sessions, as they were; none where there are no recordings. @returns {History[]} */
export function recorded() {
  const few = (name, count) =>
    (transcripts(name) ?? [])
      .filter(({ messages }) => {
        const { length } = JSON.stringify(messages);
        return length > 300_000 && length < 420_000;
      })
      .sort((one, other) => (one.id < other.id ? -1 : 1))
      .slice(0, count);
  const records = [...few("full/openai/claude_code_entire_cli", 1), ...few("full/openai/tau_composite_long", 1)];
  return records.map(({ messages }, nth) => ({
    name: `recorded session ${nth + 1}`,
    // What the system says is told apart from the messages.
    messages: messages.filter(({ role }) => role !== "system"),
    contextWindow: RECORDED_WINDOW,
    stable: stableOf(RECORDED_WINDOW),
    answer: ANSWER,
    model: "works",
  }));
}
