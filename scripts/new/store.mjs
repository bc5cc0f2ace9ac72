/** A store of Node: exported by `context-compactor/node`, and in every test that stores go through. */
export default ({ kebab, camel, words }) => ({
  files: { [`js/store/${kebab}.ts`]: "store.ts.txt", [`tests/node/${kebab}-store.test.mjs`]: "store.test.mjs.txt" },
  edits: [
    ["js/entry/node.ts", "after", "export { fileStore", `export { ${camel}Store } from "../store/${kebab}.js";`, new RegExp(`\\b${camel}Store\\b`)],
    ["tests/node/exports.test.mjs", "list", /("\.\/node": \[)(.*)(\])/, `"${camel}Store"`],
    ["tests/support/stores.mjs", "list", /(export const stores = \{ )(.*)( \})/, camel],
    [
      "tests/support/stores.mjs",
      "before",
      "/** Lasts as long as its files. */",
      `async function ${camel}() {\n  const store = node.${camel}Store();\n  return { open: () => store, remove: async () => {} }; //~ open anew at each call, on one place; the same below in \`durable\`, if it outlives a process\n}\n`,
    ],
    ["docs/entries.md", "within", /\| `fileStore`: sessions in files/, `$&; \`${camel}Store\`: sessions in ${words}`],
    ["ARCHITECTURE.md", "within", /\| `indexeddb`, `memory`/, `$&, \`${kebab}\``],
  ],
  left: [
    ["docs/entries.md", `\`${camel}Store\`: sessions`, "what it is for"],
    ["docs/limits.md", "* **`fileStore`** needs", "what users must know of it, and a column in the table of README.md (what each store survives)"],
  ],
});
