/** One conversation of an agent, and its messages in the shapes that each library takes. */

const line = "The parser reads src/lib.rs, keeps its state in memory and answers with line 42. ";

const parts = ["lexer", "token stream", "cache", "index", "cursor", "buffer", "frame", "header", "footer", "record"];
const steps = parts.flatMap((part, nth) => [
  `- The ${part} was read; it hands its state to the ${parts[(nth + 3) % parts.length]}.`,
  `- The ${part} was changed beside the ${parts[(nth * 7 + 4) % parts.length]}, and its tests are still to be run.`,
]);

/** What the model answers when it is asked for a summary: of about 400 tokens, with the order of a real one. */
export const SUMMARY = `## Status
The parser keeps its state in memory; the tools answered, and nothing is open.

## Progress
${steps.join("\n")}

## Next
The tests of what was changed are run.`;

/** Text of about so many tokens. */
function words(tokens) {
  return line.repeat(Math.ceil((tokens * 4) / line.length)).slice(0, tokens * 4);
}

/**
 * A turn of four messages, about 1,000 tokens of four characters when its result has 760 of them: a question, a call, its
 * result, an answer.
 */
export function turn(nth, tokens = 760) {
  return {
    question: `Question ${nth}: ${words(60)}`,
    call: { id: `call_${nth}`, name: "read_file", args: { path: `src/file_${nth}.rs` } },
    result: `${nth}: ${words(tokens)}`,
    answer: `Answer ${nth}: ${words(150)}`,
  };
}

/** OpenAI Chat messages. */
export function chat({ question, call: { id, name, args }, result, answer }) {
  const call = { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
  return [
    { role: "user", content: question },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: result },
    { role: "assistant", content: answer },
  ];
}

/** What makes a model message of the AI SDK of a chat message. */
export function modelMessage() {
  const names = new Map();
  return ({ role, content, tool_calls: calls, tool_call_id: id }) => {
    const result = { type: "tool-result", toolCallId: id, toolName: names.get(id), output: { type: "text", value: content } };
    if (role === "tool") return { role, content: [result] };
    if (!calls) return { role, content };
    for (const { id, function: { name } } of calls) names.set(id, name);
    const parts = calls.map(({ id, function: { name, arguments: given } }) => {
      return { type: "tool-call", toolCallId: id, toolName: name, input: JSON.parse(given) };
    });
    return { role, content: content ? [{ type: "text", text: content }, ...parts] : parts };
  };
}

/** What makes a message of LangChain.js of a chat message. */
export function langchain({ AIMessage, HumanMessage, ToolMessage }) {
  return ({ role, content, tool_calls: calls = [], tool_call_id: id }) => {
    if (role === "tool") return new ToolMessage({ content, tool_call_id: id });
    if (role === "user") return new HumanMessage(content);
    const call = ({ id, function: { name, arguments: given } }) => ({ id, name, args: JSON.parse(given), type: "tool_call" });
    return new AIMessage({ content: content ?? "", tool_calls: calls.map(call) });
  };
}
