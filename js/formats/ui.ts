/** Messages with parts of the AI SDK 4, which Mastra stores, too: a call and its result are one part. */

import { blocksOf, edited, given, type Edits, type Fields } from "./shared.js";

/** States of a call, in version 4 and in later ones. */
const STATES: [string, string][] = [
  ["partial-call", "input-streaming"],
  ["call", "input-available"],
  ["result", "output-available"],
];

/** A call of version 4 as a part of later ones. */
function readCall({ toolName, toolCallId, state, args, result, isError, errorText, ...more }: Fields): Fields {
  const [, known = state] = STATES.find(([old]) => old === state) ?? [];
  const failed = known === "output-available" && isError === true;
  const said = failed ? { state: "output-error", errorText: errorText ?? (typeof result === "string" ? result : JSON.stringify(result)) } : { state: known, output: result, errorText };
  return given({ ...more, type: `tool-${toolName}`, toolCallId, input: args, ...said });
}

function writeCall({ type, toolCallId, state, input: args, output: result, errorText, ...more }: Fields): Fields {
  const toolName = type.slice("tool-".length);
  const [old = state] = STATES.find(([, known]) => known === state) ?? [];
  const said = state === "output-error" ? { state: "result", result: errorText, isError: true } : { state: old, result, errorText };
  return given({ ...more, ...said, toolCallId, toolName, args });
}

/** A part of version 4 as the parts that say the same. */
function readPart(part: Fields): Fields {
  switch (part["type"]) {
    case "tool-invocation": {
      const { type: _, toolInvocation, ...more } = part;
      return { ...readCall(toolInvocation), ...(Object.keys(more).length > 0 ? { part: more } : {}) };
    }
    case "reasoning": {
      const { reasoning, details, ...more } = part;
      const said = (details ?? []).map(({ text = "" }: Fields) => text).join("");
      const signature = details?.find(({ signature }: Fields) => signature)?.signature;
      // Where later versions have it: reasoning that is signed goes when what is before it changes.
      const metadata = signature ? { providerMetadata: { ...more["providerMetadata"], anthropic: { signature } } } : {};
      return given({ ...more, text: reasoning || said, details, ...metadata });
    }
    case "file": {
      const { data, mimeType: mediaType, ...more } = part;
      if (data === undefined) return part;
      return { ...more, mediaType, url: /^(data|https?):/.test(data) ? data : `data:${mediaType};base64,${data}` };
    }
    default:
      return part;
  }
}

function writePart({ part: more, ...part }: Fields): Fields {
  const { type } = part;
  if (type?.startsWith("tool-")) return { ...more, type: "tool-invocation", toolInvocation: writeCall(part) };
  if (type === "reasoning") {
    const { text, details, providerMetadata, ...rest } = part;
    const { anthropic, ...others } = Object(providerMetadata) as Fields;
    const metadata = details && anthropic ? others : providerMetadata;
    return given({ ...rest, reasoning: text, details: details ?? [{ type: "text", text }], providerMetadata: Object.keys(metadata ?? {}).length > 0 ? metadata : undefined });
  }
  if (type !== "file") return part;
  const { url, mediaType: mimeType, ...rest } = part;
  const [, data = url] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  return { ...rest, mimeType, data };
}

/** Files beside the parts. */
function readAttachment({ url, contentType: mediaType, name: filename }: Fields): Fields {
  return given({ type: "file", url, mediaType: mediaType ?? "image/*", filename, attachment: true });
}

function writeAttachment({ url, mediaType: contentType, filename: name }: Fields): Fields {
  return given({ name, contentType, url });
}

/** Parts with the edits of their calls and results. */
function patchParts(parts: readonly Fields[], edits: Edits): Fields[] {
  const change = (part: Fields, fields: Fields) => ({ ...part, toolInvocation: { ...part["toolInvocation"], ...fields } });
  const has = ({ type, toolInvocation: call }: Fields, isResult: boolean) => type === "tool-invocation" && (!isResult || "result" in call || "errorText" in call);
  return edited(
    parts,
    edits,
    (part, args) => (has(part, false) ? change(part, { args }) : undefined),
    (part, result) => (has(part, true) ? change(part, "result" in part["toolInvocation"] ? { result } : { errorText: result }) : undefined),
  );
}

/** What older ones have beside `content` is in the parts of newer ones, and some have it twice. */
function partsOf({ parts = [], content, reasoning, toolInvocations = [] }: Fields): Fields[] {
  if (parts.length > 0) return parts;
  return [
    ...(reasoning ? [{ type: "reasoning", reasoning, details: [{ type: "text", text: reasoning }] }] : []),
    ...toolInvocations.map((toolInvocation: Fields) => ({ type: "tool-invocation", toolInvocation })),
    ...blocksOf(content),
  ];
}

const callsIn = (parts: readonly Fields[]): Fields[] => parts.flatMap(({ toolInvocation: call }) => (call ? [call] : []));
const all = (parts: readonly Fields[], type: string, field: string): string =>
  parts.map((part) => (part["type"] === type ? part[field] : "")).join("");

/** The last text of the parts, and all of them. */
function textsOf(parts: readonly Fields[]): [string, string] {
  return [parts.filter(({ type }) => type === "text").at(-1)?.["text"] ?? "", all(parts, "text", "text")];
}

/** The parts of what is said, and metadata, which nothing counts: they say what to write again. */
export function readSaid({ parts, content, reasoning, toolInvocations, experimental_attachments: files, ...more }: Fields): { parts: Fields[]; metadata: Fields } {
  const own = partsOf({ parts, content, reasoning, toolInvocations });
  const [last, whole] = textsOf(own);
  const metadata = given({
    ...more,
    // Some say it twice: nothing is stored a second time.
    content: content === last || content === whole ? undefined : content,
    isWhole: content === whole && content !== last ? true : undefined,
    has: Object.keys(given({ parts, content, reasoning, toolInvocations })).join(),
  });
  return { parts: [...own.map(readPart), ...(files ?? []).map(readAttachment)], metadata };
}

export function writeSaid(parts: readonly Fields[], metadata: Fields, usual: string): Fields {
  const { has = usual, content, isWhole, ...more } = metadata;
  const own = parts.filter(({ attachment }) => !attachment).map(writePart);
  const files = parts.filter(({ attachment }) => attachment).map(writeAttachment);
  const [last, whole] = textsOf(own);
  const said = { parts: own, content: content ?? (isWhole ? whole : last), reasoning: all(own, "reasoning", "reasoning"), toolInvocations: callsIn(own) };
  const fields = Object.entries(said).filter(([name]) => has.split(",").includes(name));
  return { ...Object.fromEntries(fields), ...more, ...(files.length > 0 ? { experimental_attachments: files } : {}) };
}

export function patchSaid(said: Fields, edits: Edits): Fields {
  const { parts, toolInvocations } = said;
  const patched = patchParts(partsOf(said), edits);
  return { ...said, ...(parts ? { parts: patched } : {}), ...(toolInvocations ? { toolInvocations: callsIn(patched) } : {}) };
}
