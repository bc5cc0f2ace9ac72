/** Collects messages in the OpenAI chat format. Every tool call is followed by its result. */
export function createConversation(random) {
  const messages = [];
  return {
    messages,
    system: (content) => void messages.push({ role: "system", content }),
    user: (content) => void messages.push({ role: "user", content }),
    say: (content) => void messages.push({ role: "assistant", content }),
    /** One assistant step: `calls` are `[tool name, arguments, result]`. */
    step(content, ...calls) {
      const withIds = calls.map(([name, args, result]) => ({
        id: `call_${random.id(24)}`,
        name,
        args,
        result,
      }));
      messages.push({
        role: "assistant",
        content: content || null,
        tool_calls: withIds.map(({ id, name, args }) => ({
          id,
          type: "function",
          function: { name, arguments: JSON.stringify(args) },
        })),
      });
      for (const { id, result } of withIds)
        messages.push({ role: "tool", tool_call_id: id, content: result });
    },
  };
}
