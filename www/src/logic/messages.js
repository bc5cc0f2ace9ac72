// @ts-check
/** Reads messages of the OpenAI formats and of the Anthropic format for display. Nothing here changes them. */

/** @typedef {{ id: string, name: string, input: string }} Call */
/** @typedef {"system" | "user" | "assistant" | "tool"} Kind */

/** @param {unknown} value @returns {Record<string, unknown>} */
const record = (value) =>
  typeof value === "object" && value !== null ? /** @type {Record<string, unknown>} */ (value) : {};
/** @param {unknown} value @returns {Record<string, unknown>[]} */
const blocks = (value) => (Array.isArray(value) ? value.map(record) : []);
/** @param {unknown} value */
const string = (value) => (typeof value === "string" ? value : "");

/** Who speaks. An Anthropic user message that carries tool results counts as `tool`.
 *  @param {object} message @returns {Kind} */
export function kindOf(message) {
  const { role, content, type } = record(message);
  if (role === "tool" || role === "function" || string(type).endsWith("_call_output")) return "tool";
  if (role === "user" && blocks(content).some(({ type }) => type === "tool_result")) return "tool";
  if (role === "system" || role === "developer") return "system";
  return role === "assistant" || string(type).endsWith("_call") || type === "reasoning" ? "assistant" : "user";
}

/** @param {object} message @returns {Call[]} */
export function callsOf(message) {
  const { tool_calls: calls, content, type, call_id: id, name, arguments: input } = record(message);
  if (type === "function_call") return [{ id: string(id), name: string(name) || "tool", input: string(input) }];
  const openai = blocks(calls).map((call) => {
    const { name, arguments: input } = record(call.function);
    return { id: string(call.id), name: string(name) || "tool", input: string(input) };
  });
  const anthropic = blocks(content)
    .filter(({ type }) => type === "tool_use")
    .map(({ id, name, input }) => ({
      id: string(id),
      name: string(name) || "tool",
      input: JSON.stringify(input ?? {}),
    }));
  return [...openai, ...anthropic];
}

/** Ids of the calls that a message answers. @param {object} message @returns {string[]} */
export function answersOf(message) {
  const { tool_call_id: id, content, type, call_id: answered } = record(message);
  if (typeof id === "string") return [id];
  if (string(type).endsWith("_call_output")) return [string(answered)];
  return blocks(content)
    .filter(({ type }) => type === "tool_result")
    .map((block) => string(block.tool_use_id));
}

/** References that stand in place of results (`S1.1`), with the call that each result answers. One message of the
 *  Anthropic format can hold several. @param {object} message @returns {{ ref: string, callId: string }[]} */
export function referencesOf(message) {
  const { role, content } = record(message);
  const [answered] = answersOf(message);
  const results =
    answered !== undefined && role !== "user"
      ? [{ callId: answered, text: textOf(message) }]
      : blocks(content)
          .filter(({ type }) => type === "tool_result")
          .map((block) => ({ callId: string(block.tool_use_id), text: contentText(block.content) }));
  return results.flatMap(({ callId, text }) => {
    const ref = /^Tool result is at: (off_[a-z0-9]{26})(?: \(.*|$)/.exec(text)?.[1];
    return ref === undefined ? [] : [{ ref, callId }];
  });
}

/** The readable text of a message, without its calls. @param {object} message @returns {string} */
export function textOf(message) {
  const { content, output } = record(message);
  return contentText(content ?? output);
}

/** @param {unknown} content @returns {string} */
function contentText(content) {
  if (typeof content === "string") return content;
  return blocks(content)
    .map((block) => {
      if (block.type === "tool_result") return contentText(block.content);
      if (block.type === "tool_use") return "";
      if (typeof block.text === "string") return block.text;
      if (typeof block.thinking === "string") return block.thinking;
      return `[${string(block.type) || "block"}]`;
    })
    .filter((text) => text !== "")
    .join("\n");
}

/** Text and calls together: what a diff compares. @param {object} message @returns {string} */
export function fullTextOf(message) {
  const calls = callsOf(message).map(({ name, input }) => `${name}(${input})`);
  return [textOf(message), ...calls].filter((text) => text !== "").join("\n");
}

/** One line for a list. @param {object} message @returns {string} */
export function previewOf(message) {
  const line =
    textOf(message)
      .trim()
      .split("\n")
      .find((text) => text.trim() !== "") ?? "";
  if (line !== "") return line.slice(0, 240);
  return callsOf(message)
    .map(({ input }) => argumentsLine(input))
    .join(" · ")
    .slice(0, 240);
}

/** The values of a call's arguments on one line. @param {string} input @returns {string} */
export function argumentsLine(input) {
  try {
    const values = Object.values(record(JSON.parse(input)));
    return values
      .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
      .join(" ")
      .replace(/\s+/g, " ")
      .slice(0, 160);
  } catch {
    return input.slice(0, 160);
  }
}

/** True where a prompt is sent before the message: what a model answers at once can be several items of the Responses format.
 *  @param {readonly object[]} messages @param {number} index */
export function isCall(messages, index) {
  const isAnswer = kindOf(messages[index] ?? {}) === "assistant";
  return isAnswer && record(messages[index - 1]).type !== "reasoning" && !isExchangeOpen(messages.slice(0, index));
}

/** True while a call waits for its result: nothing else may be said then. @param {readonly object[]} messages */
export function isExchangeOpen(messages) {
  const answered = new Set();
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!message) continue;
    if (kindOf(message) === "assistant") return callsOf(message).some(({ id }) => !answered.has(id));
    for (const id of answersOf(message)) answered.add(id);
  }
  return false;
}

/** Call id → tool name, for labels on results. @param {readonly object[]} messages @returns {Map<string, string>} */
export function toolNames(messages) {
  /** @type {Map<string, string>} */
  const names = new Map();
  for (const message of messages) for (const { id, name } of callsOf(message)) names.set(id, name);
  return names;
}
