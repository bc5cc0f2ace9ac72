// Exact o200k counts of JSON strings, one a line on stdin: the reference of the fit.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(new URL("./sources/package.json", import.meta.url));
const { countTokens } = require("gpt-tokenizer/encoding/o200k_base");

// Control tokens in the text are text: nothing in a message is special.
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${countTokens(JSON.parse(line), plain)}\n`);
}
