/**
 * What the clients' own packages say about the shape of messages: an oracle that shares nothing with the engine. It
 * knows no rule between messages, as which result answers which call: those are `validateHistory`'s.
 */

import { Ajv } from "ajv";
import * as ai6 from "ai6";
import * as ai7 from "ai7";
import { isDeepStrictEqual } from "node:util";
import { schemas } from "./generate.mjs";

/** The AI SDK's versions that the package supports. */
export const sdks = { 6: ai6, 7: ai7 };

/**
 * What is wrong with the shape of `messages`, a line each; none when the official types allow them. `versions` are
 * those of the AI SDK that must accept a history of `ai-sdk`.
 */
export async function shapeProblems(format, messages, { versions = [6, 7] } = {}) {
  if (format !== "ai-sdk") return byTypes(format, messages);
  const problems = await Promise.all(
    versions.map(async (version) => {
      const found = isUi(messages)
        ? await uiProblems(sdks[version], messages)
        : modelProblems(sdks[version], messages);
      return found.map((problem) => `AI SDK ${version}: ${problem}`);
    }),
  );
  return problems.flat();
}

/** True for UI messages of the AI SDK, false for its model messages. */
const isUi = (messages) =>
  messages.length > 0 && messages.every((message) => Array.isArray(message.parts));

// ---- types --------------------------------------------------------------------------------------------------------

/** A turn of a ReAct trajectory; no package declares it. */
const REACT = {
  type: "object",
  properties: { thought: { type: "string" }, action: { type: "object" }, result: { type: "string" } },
  required: ["thought", "action", "result"],
  additionalProperties: false,
};

/** The types of one message. Anthropic's beta has blocks that its API proper has not, and the other way round. */
const TYPES = {
  "openai-chat": ["OpenAiChat"],
  "openai-responses": ["OpenAiResponses"],
  anthropic: ["Anthropic", "AnthropicBeta"],
  gemini: ["Gemini"],
  react: ["React"],
};

/** Keys that the types demand and the API does not: the AI SDK sends answers without an id, pictures without detail. */
const OPTIONAL = {
  ResponseOutputMessage: ["id", "status", "type"],
  ResponseOutputText: ["annotations"],
  ResponseInputImage: ["detail"],
};

function asTheApi(schema) {
  for (const [name, keys] of Object.entries(OPTIONAL)) {
    const definition = schema.definitions?.[name];
    if (definition) definition.required = definition.required.filter((key) => !keys.includes(key));
  }
  return schema;
}

const compiled = new Map();

/** The checks of a format, made when first asked for: compiling takes up to a second. */
function checks(format) {
  if (!compiled.has(format)) {
    const all = { ...schemas(), React: REACT };
    compiled.set(
      format,
      TYPES[format].map((type) => new Ajv({ strict: false, allErrors: true }).compile(asTheApi(all[type]))),
    );
  }
  return compiled.get(format);
}

function byTypes(format, messages) {
  return messages.flatMap((message, index) => {
    const errors = [];
    for (const check of checks(format)) {
      // Clients send JSON: a key without a value is no key.
      if (check(JSON.parse(JSON.stringify(message)))) return [];
      errors.push(...check.errors);
    }
    return [`${index}: ${closest(errors)}`];
  });
}

/** A union fails once for each of its members: those of another role or type say nothing. */
function closest(errors) {
  const member = ({ schemaPath }) => schemaPath.split("/")[2];
  const others = new Set(
    errors.filter(({ instancePath }) => /\/(role|type)$/.test(instancePath)).map(member),
  );
  const meant = errors.filter((error) => !others.has(member(error)));
  const lines = (meant.length > 0 ? meant : errors)
    .filter(({ keyword }) => keyword !== "anyOf")
    .map(({ instancePath, message, params }) => {
      const what = params.additionalProperty ?? params.allowedValue ?? params.allowedValues ?? "";
      return `${instancePath || "/"} ${message} ${what}`.trim();
    });
  return [...new Set(lines)].slice(0, 5).join("; ");
}

// ---- AI SDK -------------------------------------------------------------------------------------------------------

/** The SDK's schema takes unknown keys off: what it changed had some. */
function modelProblems(sdk, messages) {
  return messages.flatMap((message, index) => {
    const parsed = sdk.modelMessageSchema.safeParse(message);
    if (!parsed.success)
      return [`${index}: ${parsed.error.issues.map(({ path, code }) => `${path.join("/")} ${code}`)}`];
    return isDeepStrictEqual(parsed.data, message) ? [] : [`${index}: has keys that the SDK does not know`];
  });
}

async function uiProblems(sdk, messages) {
  const checked = await sdk.safeValidateUIMessages({ messages });
  if (!checked.success) return [checked.error.message.replaceAll(/\s+/g, " ").slice(-300)];
  return isDeepStrictEqual(checked.data, messages) ? [] : ["has keys that the SDK does not know"];
}
