/** Histories in which anything was changed: fields that other messages have, values of every kind, and what JSON has not. */

const NUMBERS = [0, -0, 1, -1, 0.1, 1e-7, 0.0000015, 0.00001, 1e16, 123456789012345680000, -1e20, 2 ** 53, 2 ** 63, 1e21, 1.5e300, 5e-324, NaN, Infinity, -Infinity];
const TEXTS = [
  ...["", "x", "text", "Näher 上下文 👍🏽", "\ud800", "a\udc00b", '{"a":1,"b":{"c":2}}', '"\\', "a\nb\u0001\u007f\u2028", "invalid", "image/png", "audio/mp3", "video/mp4", "application/pdf", "text/plain"],
  ...["user", "assistant", "system", "developer", "tool", "function", "model", "USER", "message", "output-available", "output-error", "output-denied", "server", "compaction", "openai.compaction"],
  ...["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAA=", "data:text/plain,näher", "data:x", "https://example.com/a.png", "R0lGODlhQAHIAIAAAA==", "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCAEAAQADASIA", "UklGRgAAAABXRUJQVlA4WAAAAAAAAAAAPwEA7wAA", "UklGRgAAAABXRUJQVlA4TAAAAAAvP8E7AAAA", "UklGRgAAAABXRUJQVlA4IAAAAAAAAAAAnQEqQAHwAA=="],
];
const TYPES =
  "text image file thinking redacted_thinking refusal reasoning compaction compaction_summary compaction_trigger image_url input_audio video_url document_url tool_use tool_result server_tool_use mcp_tool_use web_search_tool_result document search_result container_upload input_text output_text input_image input_file computer_screenshot summary_text reasoning_text tool-call tool-result tool-approval-request tool-approval-response tool-future-output step-start reasoning-file source-url data-x steering-message dynamic-tool tool-read custom message function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output computer_call computer_call_output tool_search_call tool_search_output mcp_call mcp_approval_request mcp_approval_response mcp_list_tools item_reference image_generation_call web_search_call program program_output program_call_output future_call future_call_output future_response content json error-text error-json execution-denied media file-data image-data file-url image-url file-id image-file-id file-reference image-file-reference function".split(" ");
const KEYS =
  "role content type text parts id name input output arguments tool_calls tool_call_id function function_call refusal audio images reasoning reasoning_content reasoning_details thinking thinking_blocks tool_plan signature data source media_type url image image_url file file_data input_audio video_url document_url tool_use_id is_error call_id action actions operation status summary encrypted_content result execution approval_request_id toolCallId toolName state providerExecuted rawInput errorText approval approvalId reason providerOptions providerMetadata mediaType mimeType mime_type value functionCall function_call functionResponse function_response inlineData inline_data fileData thought thoughtSignature args response error executableCode toolCall kind custom thoughts tool toolCalls toolInvocations callId lc stdout stderr filename".split(" ");

function anyValue(random, depth = 0) {
  switch (random(depth > 2 ? 7 : 10)) {
    case 0:
      return NUMBERS[random(NUMBERS.length)];
    case 1:
      return [null, true, false, undefined][random(4)];
    case 2:
    case 3:
      return TEXTS[random(TEXTS.length)];
    case 4:
      return TYPES[random(TYPES.length)];
    case 5:
      return [new Date(0), new Date(NaN), new URL("https://example.com/ä"), new URL("data:text/plain,abc"), new Uint8Array(0), Uint8Array.of(1, 2, 3), Uint8Array.from(atob(TEXTS.at(-1)), (unit) => unit.charCodeAt(0))][random(7)];
    case 6:
      return TEXTS[random(TEXTS.length)].repeat(1 + random(40));
    case 7:
      return Array.from({ length: random(4) }, () => anyValue(random, depth + 1));
    default:
      return Object.fromEntries(Array.from({ length: random(5) }, () => [KEYS[random(KEYS.length)], anyValue(random, depth + 1)]));
  }
}

/** All objects and lists in a value. */
function places(value) {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof Date || value instanceof URL) return [];
  return [value, ...Object.values(value).flatMap(places)];
}

/** Messages of one history with some of another, and a few changes. */
export function mutated({ messages }, other, random) {
  const from = random(messages.length);
  const made = structuredClone(messages.slice(from, from + 1 + random(4)));
  if (random(6) === 0) made.push(structuredClone(other.messages[random(other.messages.length)]));
  const donors = places(other.messages);
  for (let changes = random(4); changes > 0; changes--) {
    const all = places(made).slice(1);
    if (all.length === 0) break;
    const place = all[random(all.length)];
    const keys = Object.keys(place);
    const key = Array.isArray(place) ? random(place.length + 1) : keys.length > 0 && random(3) > 0 ? keys[random(keys.length)] : KEYS[random(KEYS.length)];
    const donor = donors[random(donors.length)];
    if (random(4) === 0 && !Array.isArray(place)) delete place[key];
    else if (key === "type" && random(2) === 0) place[key] = TYPES[random(TYPES.length)];
    else place[key] = random(4) === 0 ? structuredClone(donor) : anyValue(random);
  }
  return { messages: made };
}
