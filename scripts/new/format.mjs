import { readFileSync } from "node:fs";

/** Methods of a trait, each of which is that of Chat Completions. */
function forwards(path, name) {
  const text = readFileSync(new URL(`../../crates/wire/src/${path}`, import.meta.url), "utf8");
  const body = text.split(`pub trait ${name}`)[1]?.split("\n}\n")[0] ?? "";
  return Array.from(body.matchAll(/^ {4}(fn (\w+)[^(]*\(&self(.*)\) -> .*?)(?:;| \{)$/gm), ([, signature, method, given]) => {
    const values = Array.from(given.matchAll(/, _?(\w+): /g), ([, value]) => value).join(", ");
    return /^(evidence|dialect)/.test(method) ? "" : `\n    ${signature.replace(/ _(\w+:)/g, " $1")} {\n        OpenaiChat.${method}(${values})\n    }\n`;
  }).join("");
}

/**
 * A wire format: it begins as Chat Completions under its own name, which only the option `format` chooses. TypeScript and Rust name
 * the tables of types; `tests/node/lists.test.mjs` compares the others.
 */
export default ({ kebab, snake, Pascal, words, Words, key }) => {
  const chat = (call) => `        Format::${Pascal} => ${call},`;
  return {
    texts: {
      ...{ wire: forwards("lib.rs", "Wire"), rules: forwards("lib.rs", "Rules") },
      ...{ tools: forwards("tools.rs", "Tools"), calls: forwards("tools.rs", "Calling") },
    },
    files: {
      [`crates/wire/src/${snake}/mod.rs`]: "format.rs.txt",
      [`crates/core/tests/all/${snake}_rules.rs`]: "format-test.rs.txt",
      [`tests/conformance/${kebab}.json`]: "format.json.txt",
    },
    edits: [
      ["crates/wire/src/lib.rs", "sorted", /^(?:pub )?mod (\w+);$/, `mod ${snake};`, new RegExp(`^ +${Pascal} = |"${kebab}"`)],
      ["crates/wire/src/lib.rs", "after", '    React = "react"', `    /// ${Words}. //~ what its messages are\n    ${Pascal} = "${kebab}", ${snake}::${Pascal};`],
      ["crates/store-tests/src/histories/mod.rs", "before", "Format::React => ", `${chat("openai_chat::history(rng)")} //~ valid histories of its own, in a file like gemini.rs`],
      ["crates/store-tests/src/histories/mod.rs", "list", /(const NAMED: &\[Format\] = &\[)(.*)(\])/, `Format::${Pascal}`],
      ["crates/store-tests/src/conversation.rs", "before", "Format::React => Vec::new(),", `${chat("self::calls(Format::OpenaiChat, calls)")} //~ its calls`],
      ["crates/store-tests/src/conversation.rs", "before", "Format::React => {", `${chat("self::results(Format::OpenaiChat, results)")} //~ its results`],
      ["crates/core/tests/all/recall_tools.rs", "before", 'Format::React => json!({ "tool": name', `${chat("call(Format::OpenaiChat, name, arguments)")} //~ a call`],
      ["crates/core/tests/all/recall_tools.rs", "before", 'Format::React => json!({ "thought": ""', `${chat("answer(Format::OpenaiChat, name, arguments, text, is_error)")} //~ its answer`],
      ["crates/core/tests/all/recall_tools.rs", "before", 'Format::React => json!({ "name": name', `${chat("definition(Format::OpenaiChat, name, description, schema)")} //~ a definition`],
      ["crates/core/tests/all/main.rs", "sorted", /^mod (?!support)(\w+);$/, `mod ${snake}_rules;`],
      ["tests/fixtures/option-bounds.json", "within", /\\"react\\"(?=[";])/, `$&, \\"${kebab}\\"`],
      ["tests/fixtures/option-bounds.json", "after", '[{"format":"react"},null],', `[{"format":"${kebab}"},null],`],
      ["js/types/messages.ts", "after", "  react: never;", `  ${key}: PlainMessage; //~ messages that a compaction adds`],
      ["js/types/tools.ts", "after", "  react: Described & {", `  ${key}: ToolDefinitions["openai-chat"]; //~ a definition of a tool`],
      ["js/types/tools.ts", "after", "  react: { thought: string;", `  ${key}: ToolAnswers["openai-chat"]; //~ the answer to a call`],
      ["js/tokens/detect.ts", "after", "    evidence: (turn) =>", `  },\n  ${key}: {\n    read: readChat, //~ its reader, in a file like react.ts\n    foreign: ["parts", "providerOptions"],\n    evidence: () => undefined,`],
      ["js/edited.ts", "after", "  react() {},", `  ${key}: (message, found) => PLACES["openai-chat"](message, found), //~ where its calls and results are`],
      ["tests/node/recall.test.mjs", "before", "    react: { tool: name", `    ${key}: { id: "a", type: "function", function: { name, arguments: JSON.stringify(arguments_) } }, //~ a call`],
      ["tests/node/recall.test.mjs", "before", '    react: { thought: ""', `    ${key}: { role: "tool", tool_call_id: "a", content: text }, //~ its answer`],
      ["tests/conformance/vectors.schema.json", "list", /("format": \{ "enum": \[)(.*)(\])/, `"${kebab}"`],
      ["tests/conformance/vectors.test.mjs", "after", '  react: ["RT1"],', `  ${key}: [], //~ ids of its rules, two letters of its own and a digit`],
      ["tests/conformance/README.md", "within", /\(model and UI messages of the AI SDK\)/, `$&, \`${kebab}\` (${words})`],
      ["tests/formats/fixtures/index.mjs", "after", "  react,", `  ${key}: { ...openaiChat, format: "${kebab}", isDetected: false }, //~ histories of its own, in a file like gemini.mjs`],
      ["tests/formats/schemas/index.mjs", "after", '  react: ["React"],', `  ${key}: ["OpenAiChat"], //~ the official type of a message`],
      ["tests/formats/offloaded.test.mjs", "after", "  react: ({ thought, action, result })", `  ${key}: (message) => RESULTS["openai-chat"](message), //~ results in a message`],
      ["tests/formats/rules.mjs", "after", "  gemini: geminiIsSound,", `  ${key}: chatIsSound, //~ a second opinion on its rules`],
      ["docs/formats.md", "after", "| `react` | a trajectory", `| \`${kebab}\` | as Chat Completions | – | //~ its messages, and what it is tested with`],
    ],
    left: [["README.md", "* **Formats:**", "its name among the formats"]],
  };
};
