/** What was given in the place of messages, and what to write for it. */

/** What a value is, for people. */
export function named(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return "a text";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = className(value);
  return name === "" || name === "Object" ? "an object" : `a ${name}`;
}

/** Behind "messages must be an array": what to do about what was given; empty when that is not known. */
export function adviceFor(given: unknown, name: string): string {
  if (given === undefined) return `, and undefined was given: is the history loaded, and awaited?`;
  if (typeof given === "string") {
    const isJson = /^\s*[[{]/.test(given);
    return isJson ? `, and a text was given: JSON.parse(${name})` : `, and a text was given: [{ role: "user", content: text }]`;
  }
  if (given instanceof Set) return `, and a Set was given: [...${name}]`;
  if (given instanceof Map) return `, and a Map was given: [...${name}.values()]`;
  if (given instanceof Promise) return `, and a Promise was given: await it`;
  if (typeof given !== "object" || given === null) return "";
  try {
    const record = given as Record<PropertyKey, unknown>;
    if (Array.isArray(record["messages"]) && !("sessionId" in record)) return ", and an object with messages was given: pass its .messages";
    if (typeof record["role"] === "string") return `, and one message was given: [${name}]`;
    if (typeof record[Symbol.iterator] === "function") return `, and ${named(given)} was given: [...${name}]`;
  } catch {
    // Something that cannot be looked into.
  }
  return "";
}

/** Behind "a message must be an object with a role": what was given, and what to write. */
export function notOne(given: unknown): string {
  if (Array.isArray(given)) return `, and an array was given: ${ofArray(given)}`;
  if (typeof given === "string") {
    const isJson = /^\s*[[{]/.test(given);
    return isJson ? ", and a text was given: JSON.parse it" : ', and a text was given: { role: "user", content: text }';
  }
  if (given === undefined) return ", and undefined was given: is the message there, and awaited?";
  return `, and ${named(given)} was given`;
}

function ofArray(given: readonly unknown[]): string {
  const [first, second] = given;
  if (typeof first === "string" && typeof second === "string" && given.length === 2) {
    return 'write a pair of LangChain as { role, content }, as in { role: "user", content: text }';
  }
  const { type, role } = Object(first) as { type?: unknown; role?: unknown };
  if (typeof type === "string" && role === undefined) {
    return 'write blocks of content as { role: "assistant", content }; items of OpenAI Responses are spread, as in append(...output)';
  }
  return "spread it, as in append(...messages); compact takes the history itself, as in compact(messages)";
}

/** What to hand over in the place of a model's whole answer; empty for others. */
export function ofAnswer(given: object): string {
  try {
    const { choices, candidates, output, object, response, role } = given as Record<string, unknown>;
    if (role !== undefined) return "";
    if (Array.isArray(choices)) return "this is a whole completion: hand over its .choices[0].message";
    if (Array.isArray(candidates)) return "this is a whole answer of Gemini: hand over its .candidates[0].content";
    if (object === "response" && Array.isArray(output)) return "this is a whole response: hand over its items, as in append(...response.output)";
    const { messages } = Object(response) as { messages?: unknown };
    if (Array.isArray(messages)) return "this is a result of the AI SDK: hand over its messages, as in append(...result.response.messages)";
  } catch {
    // Something that cannot be looked into.
  }
  return "";
}

/** How to have an instance of another library's class read; empty for others. */
export function converter(value: object): string {
  try {
    const own = value as { lc_namespace?: unknown; lc_serializable?: unknown };
    const isLangChain = Array.isArray(own.lc_namespace) || "lc_serializable" in value;
    if (isLangChain || /^(System|Human|AI|Tool|Chat|Function)Message(Chunk)?$/.test(className(value))) {
      return "; this looks like a message of LangChain: pass `format: langchain`, imported from context-compactor/formats";
    }
  } catch {
    // Something that cannot be looked into.
  }
  return "";
}

function className(value: object): string {
  try {
    return (Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null)?.constructor?.name ?? "";
  } catch {
    return "";
  }
}
