/**
 * The rules between messages once more, as plainly as they can be said and from the providers' side: a second opinion
 * that shares no line with the engine's. It knows what dropping, doubling and moving whole messages can break, and
 * takes the shape of each message for granted.
 */

/** True when the provider would take the order of these messages. */
export const sound = {
  "openai-chat": chatIsSound,
  "openai-responses": responsesIsSound,
  anthropic: anthropicIsSound,
  gemini: geminiIsSound,
};

/** OC1, OC2: answers follow their calls at once, one for each. */
function chatIsSound(messages) {
  let open = new Set();
  for (const { role, tool_call_id, name, tool_calls = [], function_call } of messages) {
    if (role === "tool" || role === "function") {
      if (!open.delete(tool_call_id ?? `legacy ${name}`)) return false;
    } else {
      if (open.size > 0) return false;
      open = new Set(tool_calls.map(({ id }) => id));
      if (function_call) open.add(`legacy ${function_call.name}`);
    }
  }
  return open.size === 0;
}

/** The calls that the app answers and their outputs; those of the provider's own tools have no output item. */
const FAMILIES = {
  function_call: "function_call_output",
  custom_tool_call: "custom_tool_call_output",
  local_shell_call: "local_shell_call_output",
  shell_call: "shell_call_output",
  apply_patch_call: "apply_patch_call_output",
  computer_call: "computer_call_output",
  mcp_approval_request: "mcp_approval_response",
  tool_search_call: "tool_search_output",
  program: "program_output",
};
const OUTPUTS = new Set(Object.values(FAMILIES));

/** Outputs that the app makes. */
const APPS = new Set([...OUTPUTS].filter((type) => type !== "program_output"));

/**
 * OR1, OR2, OR4: outputs behind their calls, reasoning before an item of the model, no id of the server twice. The calls of
 * outputs that a history begins with may be the server's, which has them by `previous_response_id`.
 */
function responsesIsSound(items) {
  const first = items.findIndex(({ type, execution }) => !APPS.has(type) || execution === "server");
  const leading = first < 0 ? items.length : first;
  const open = new Set();
  const ids = new Set();
  const programs = new Set();
  for (const [at, item] of items.entries()) {
    if (item.id !== undefined && item.type !== "local_shell_call_output") {
      if (ids.has(item.id)) return false;
      ids.add(item.id);
    }
    if (item.type === "program") programs.add(item.call_id);
    if (item.type === "function_call" && item.caller && !programs.has(item.caller.caller_id)) return false;
    if (item.type in FAMILIES) {
      const key = `${FAMILIES[item.type]} ${item.call_id ?? item.id}`;
      if (open.has(key)) return false;
      open.add(key);
    } else if (OUTPUTS.has(item.type) && at >= leading) {
      if (!open.delete(`${item.type} ${item.call_id ?? item.approval_request_id ?? item.id}`)) return false;
    }
    if (item.type === "reasoning") {
      const next = items[at + 1];
      const isModels =
        next &&
        !OUTPUTS.has(next.type) &&
        (next.role ?? "assistant") === "assistant" &&
        next.type !== "compaction";
      if (!isModels) return false;
    }
  }
  // A program waits for the tools that it calls: its output may be still to come.
  return [...open].every((key) => key.startsWith("program_output "));
}

/** AN1, AN2, AN3, AN5, AN7. Neighbours of one role are one turn; what only sets how answers are made is in none. */
function anthropicIsSound(messages) {
  const turns = [];
  for (const { role, content, output_config } of messages) {
    if (role === "system" && content.length === 0 && output_config) continue;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (turns.at(-1)?.role === role) turns.at(-1).blocks.push(...blocks);
    else turns.push({ role, blocks: [...blocks] });
  }
  const of = (turn, test, key) =>
    (turn?.blocks ?? []).filter(({ type }) => test(type)).map((block) => block[key]);
  const isUse = (type) => type === "tool_use";
  const isResult = (type) => type === "tool_result";
  const isServerUse = (type) => type === "server_tool_use" || type === "mcp_tool_use";
  const isServerResult = (type) => type.endsWith("_tool_result");

  if (turns.length > 0 && turns[0].role !== "user" && turns[0].blocks[0].type !== "compaction") return false;
  let paused = [];
  for (const [at, turn] of turns.entries()) {
    if (turn.role === "assistant") {
      if (turn.blocks.every(({ type }) => /thinking$/.test(type))) return false;
      const calls = of(turn, isUse, "id");
      if (new Set(calls).size < calls.length) return false;
      const answers = turns[at + 1]?.role === "user" ? of(turns[at + 1], isResult, "tool_use_id") : [];
      if (calls.some((id) => !answers.includes(id))) return false;
      for (const { type, id, tool_use_id } of turn.blocks) {
        if (isServerUse(type)) paused.push(id);
        else if (isServerResult(type)) {
          const call = paused.lastIndexOf(tool_use_id);
          if (call < 0) return false;
          paused.splice(call, 1);
        }
      }
      // A turn that waits for the app's tools may leave its own for the next one; so may the last, and one before the system.
      const next = turns[at + 1]?.role ?? "system";
      if (calls.length === 0 && next !== "system" && paused.length > 0) return false;
    } else if (turn.role === "user") {
      const answers = of(turn, isResult, "tool_use_id");
      const calls = turns[at - 1]?.role === "assistant" ? of(turns[at - 1], isUse, "id") : [];
      if (new Set(answers).size < answers.length || answers.some((id) => !calls.includes(id))) return false;
      const firstText = turn.blocks.findIndex(({ type }) => type === "text");
      const lastResult = turn.blocks.findLastIndex(({ type }) => isResult(type));
      if (firstText >= 0 && firstText < lastResult) return false;
    } else {
      const [before, after] = [turns[at - 1], turns[at + 1]?.role];
      const ends = before?.blocks.at(-1)?.type ?? "";
      if (before?.role === "assistant" && !isServerUse(ends) && !isServerResult(ends)) return false;
      if (after === "user") return false;
    }
  }
  return true;
}

/** GM1, GM2, GM3: the user begins; calls follow the user, and their responses follow at once, as many, of their names. */
function geminiIsSound(contents) {
  if (contents.length > 0 && contents[0].role !== "user") return false;
  const names = (content, key) =>
    (content?.parts ?? []).flatMap((part) => (part[key] ? [part[key].name] : [])).sort();
  return contents.every((content, at) => {
    const same = (a, b) => a.length === b.length && a.every((name, nth) => name === b[nth]);
    if (content.role === "model") {
      const calls = names(content, "functionCall");
      const next = contents[at + 1]?.role === "user" ? contents[at + 1] : undefined;
      return (
        (calls.length === 0 || contents[at - 1].role === "user") &&
        same(calls, names(next, "functionResponse"))
      );
    }
    const before = contents[at - 1]?.role === "model" ? contents[at - 1] : undefined;
    return same(names(content, "functionResponse"), names(before, "functionCall"));
  });
}
