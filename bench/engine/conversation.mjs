/** One conversation of an agent, in the shapes that each library takes. */

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

/** Model messages of the AI SDK. */
export function modelMessages({ question, call: { id, name, args }, result, answer }) {
  const [toolCallId, toolName] = [id, name];
  return [
    { role: "user", content: question },
    { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input: args }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output: { type: "text", value: result } }] },
    { role: "assistant", content: answer },
  ];
}

/** A maker of LangChain.js messages. */
export function langchain({ AIMessage, HumanMessage, ToolMessage }) {
  return ({ question, call, result, answer }) => [
    new HumanMessage(question),
    new AIMessage({ content: "", tool_calls: [{ ...call, type: "tool_call" }] }),
    new ToolMessage({ content: result, tool_call_id: call.id }),
    new AIMessage(answer),
  ];
}
