/** An event of a session: `Notice` of the engine, its type and its row of the guide. `tests/node/lists.test.mjs` compares them. */
export default ({ kebab, snake, Pascal, Words, key }) => ({
  files: { [`crates/core/tests/all/${snake}_event.rs`]: "event.rs.txt" },
  edits: [
    [
      "crates/core/src/step/effect.rs",
      "after",
      "pub enum Notice {",
      `    /// ${Words}. //~ when the event is emitted\n    ${Pascal} {\n        /// Of the context. //~ what listeners receive, a field each\n        tokens: usize,\n    },`,
      new RegExp(`^    ${Pascal} \\{`),
    ],
    ["crates/core/tests/all/main.rs", "sorted", /^mod (?!support)(\w+);$/, `mod ${snake}_event;`],
    ["js/types/session.ts", "after", "export interface SessionEvents {", `  /** ${Words}. \`tokens\`: tokens of the context. */ //~ the same, for users\n  ${key}: { tokens: number };`, new RegExp(`^  ${key}: `)],
    ["js/listeners.ts", "after", '  "data-loss": true,', `  ${key}: true,`],
    ["docs/sessions.md", "after", "| `warning` |", `| \`${kebab}\` | \`tokens\` | ${Words} | //~ the same, in the table of events`],
  ],
  left: [["crates/core/src/step/effect.rs", "Notify(Notice)", `emit it where it happens: io.tell(Effect::Notify(Notice::${Pascal} { tokens }))`]],
});
