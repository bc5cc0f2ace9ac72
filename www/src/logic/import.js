// @ts-check
/** Turns pasted or dropped text into messages: a JSON array, `{ "messages": [...] }`, or one JSON message a line. */

/** What is wrong with an import, and where. */
export class ImportError extends Error {
  /** @param {string} message @param {{ line?: number, index?: number }} [place] */
  constructor(message, { line, index } = {}) {
    super(message);
    this.name = "ImportError";
    this.line = line;
    this.index = index;
  }
}

/** Lines that are no messages: an agent's transcript, or an archive. @param {string} text */
export function isTranscript(text) {
  const [first = ""] = text.replace(/^\uFEFF/, "").trimStart().split(/\r?\n/, 1);
  try {
    const value = JSON.parse(first);
    return isObject(value) && typeof value.role !== "string" && historyOf(value) === undefined;
  } catch {
    return false;
  }
}

/** @param {string} text @returns {{ messages: object[], source: "array" | "object" | "jsonl" }} */
export function parseHistory(text) {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (trimmed === "")
    throw new ImportError("There is nothing in it. Give a JSON array of messages, or one message a line.");
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    const lines = trimmed.split(/\r?\n/);
    if (lines.length < 2 || trimmed.startsWith("["))
      throw new ImportError(`This is not valid JSON: ${messageOf(error)}`);
    return { messages: checked(lines.flatMap(parseLine)), source: "jsonl" };
  }
  if (Array.isArray(value)) return { messages: checked(value), source: "array" };
  const inner = isObject(value) ? historyOf(value) : undefined;
  if (inner) return { messages: checked(inner), source: "object" };
  if (isObject(value) && typeof value.role === "string") return { messages: [value], source: "jsonl" };
  throw new ImportError('Found neither an array of messages nor an object with "messages".');
}

/** The messages of a request's body. @param {Record<string, unknown>} body @returns {unknown[] | undefined} */
const historyOf = ({ messages, input, contents }) => [messages, input, contents].find((value) => Array.isArray(value));

/** @param {string} line @param {number} i @returns {unknown[]} */
function parseLine(line, i) {
  if (line.trim() === "") return [];
  try {
    return [JSON.parse(line)];
  } catch (error) {
    throw new ImportError(`Line ${i + 1} is not valid JSON: ${messageOf(error)}`, { line: i + 1 });
  }
}

/** @param {unknown[]} values @returns {object[]} */
function checked(values) {
  if (values.length === 0) throw new ImportError("The array is empty.");
  return values.map((value, index) => {
    if (!isObject(value)) throw new ImportError(`Message ${index} is not an object.`, { index });
    return value;
  });
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
