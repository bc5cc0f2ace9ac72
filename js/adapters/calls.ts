/** The calls of recall tools that are under way, and their answers. */

import type { Session } from "../types.js";

/** Whose calls of the recall tools are under way: an SDK does not say it to a tool. */
export class Calls {
  readonly #sessions = new Map<string, Session>();
  #newest: Session | undefined;

  add(id: string, session: Session): void {
    this.#newest = session;
    this.#sessions.set(id, session);
    // Calls that were never executed.
    if (this.#sessions.size > 1_000) this.#sessions.delete([...this.#sessions.keys()][0] as string);
  }

  /** The answer to the call `toolCallId` of the tool `toolName`, as text. `known`: whose call it is, if an adapter knows. */
  async answer(toolName: string, input: unknown, toolCallId: string, known?: Session): Promise<string> {
    const session = known ?? this.#sessions.get(toolCallId) ?? this.#newest;
    this.#sessions.delete(toolCallId);
    return recalled(session, toolName, input, toolCallId);
  }
}

/** The answer of a session to a call of a recall tool, as text. */
export async function recalled(session: Session | undefined, toolName: string, input: unknown, toolCallId: string): Promise<string> {
  if (!session) return "Nothing of this conversation was moved out of your context.";
  const { content } = await session.recall.tools("ai-sdk").handle({ type: "tool-call", toolCallId, toolName, input });
  return content[0]?.output.value ?? "";
}
