/**
 * JSON Schemas of the types in types.ts. Nothing of them is committed: they are made from the installed packages, in
 * a few seconds, and kept in target/schemas under a name that changes with the versions of what they are made from.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createGenerator } from "ts-json-schema-generator";

const types = fileURLToPath(new URL("types.ts", import.meta.url));
const cache = fileURLToPath(new URL("../../../target/schemas", import.meta.url));
const names = ["OpenAiChat", "OpenAiResponses", "Anthropic", "AnthropicBeta", "Gemini"];
const sources = ["openai", "@anthropic-ai/sdk", "@google/genai", "ts-json-schema-generator"];

/** The schemas by the name of their type, draft 7. Objects allow no keys but those of their type. */
export function schemas() {
  const file = join(cache, `${key()}.json`);
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    // Test files run side by side: each writes its own, and the last one to finish stays.
    const mine = `${file}.${process.pid}`;
    writeFileSync(mine, JSON.stringify(generate()));
    renameSync(mine, file);
  }
  return JSON.parse(readFileSync(file, "utf8"));
}

function generate() {
  const tsconfig = fileURLToPath(new URL("tsconfig.json", import.meta.url));
  const generator = createGenerator({
    path: types,
    tsconfig,
    // The packages' types are theirs to check; their comments would be most of a schema.
    skipTypeCheck: true,
    jsDoc: "none",
    additionalProperties: false,
  });
  return Object.fromEntries(names.map((name) => [name, generator.createSchema(name)]));
}

function key() {
  const hash = createHash("sha256")
    .update(readFileSync(types))
    .update(readFileSync(fileURLToPath(import.meta.url)));
  for (const name of sources) hash.update(`${name}@${version(name)}\n`);
  return hash.digest("hex").slice(0, 16);
}

/** The version of an installed package. Not every package exports its manifest. */
function version(name) {
  const entry = fileURLToPath(import.meta.resolve(name));
  const folder = join("node_modules", name);
  const end = entry.lastIndexOf(folder) + folder.length;
  return JSON.parse(readFileSync(join(entry.slice(0, end), "package.json"), "utf8")).version;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const [name, schema] of Object.entries(schemas())) {
    const definitions = Object.keys(schema.definitions).length;
    console.log(
      `${name}: ${definitions} definitions, ${Math.round(JSON.stringify(schema).length / 1024)} KB`,
    );
  }
}
