/** A format of the app's own: whether it is one. */

import { checkFunction, checkOptions, invalidOption } from "./checks.js";
import type { CustomFormat } from "./types/formats.js";
import type { Format } from "./types.js";

/** The names of formats that another one can be based on. */
const BASES: readonly Format[] = ["openai-chat", "anthropic", "openai-responses", "gemini", "ai-sdk", "react"];

/** Formats of `context-compactor/formats`, whose names were probably meant for them. */
const TABLES = ["langchain", "openaiAgents", "mastra", "tanstack", "agui", "mistral", "bedrock", "ollama", "aiSdk4", "cohere", "mcp", "chrome"];

/** Throws for the name of a format that is to be imported. */
export function refuseName(format: unknown): void {
  const name = TABLES.find((name) => name === format);
  if (name) throw invalidOption("format", `"${name}" is imported: import { ${name} } from "context-compactor/formats", then { format: ${name} }`);
}

/** Throws unless it is a format of the app's own. */
export function checkFormat(format: object): CustomFormat {
  checkOptions(format, ["name", "base", "read", "write", "patch", "id"], "format.");
  const { name, base, read, write, patch, id } = format as Partial<CustomFormat>;
  if (typeof name !== "string" || name.trim() === "") throw invalidOption("format.name", "must be a text that is not empty");
  if (!BASES.includes(base as Format)) throw invalidOption("format.base", `must be one of ${BASES.map((base) => `"${base}"`).join(", ")}`);
  for (const [member, given] of Object.entries({ read, write })) {
    if (given === undefined) throw invalidOption(`format.${member}`, "must be a function");
  }
  for (const [member, given] of Object.entries({ read, write, patch, id })) checkFunction(`format.${member}`, given);
  return format as CustomFormat;
}
