/** The recall tools as tools of the AI SDK. An agent is made before any session is open, so what they say is here; a test holds
 *  it against the engine's. */

/** A tool as the AI SDK 6 and 7 execute it. */
export interface ExecutableTool {
  description: string;
  /** A JSON schema, marked as the SDK's `jsonSchema` does. */
  inputSchema: any;
  execute(input: any, options: any): Promise<string>;
}

/** The tools with which a model reads and searches what left its context. A type, as an interface is no `ToolSet` by itself. */
export type ExecutableRecallTools = {
  recall_read: ExecutableTool;
  recall_search: ExecutableTool;
  /** With `handoff`: lets the older messages leave, for the model's notes. */
  new_context?: ExecutableTool;
};

const READ =
  "Reads text of this conversation that was moved out of your context to save space. Call it when a tool result says only where it " +
  'is ("Tool result is at: off_…") and you need what it said, or to read in full what recall_search found. A long text comes in ' +
  "parts: the last line of the answer says how much of it was read and the offset at which to read on.";

const SEARCH =
  "Searches everything that was said in this conversation and every tool result, also what was moved out of your context or " +
  "replaced by a summary. Call it before you guess or redo something whose details (a path, an id, a number, an error, a decision) " +
  "are no longer in front of you. Answers with the passages that match best, each with a reference for recall_read and what it is; " +
  "what is in your context comes last.";

const ALL = " It searches the user's other conversations, too: what is from one of them says so, and was not said here.";

const REF =
  "The reference (off_… or m104k), copied exactly. m104k..m106x reads the messages from one to the other, m104k@12840 begins at " +
  "that character.";

const ANEW =
  "Begins with a new context when a task is done or another one begins: the older messages leave your context, and your notes stand " +
  "in their place, with what the user asked you to keep to. Nothing is deleted: recall_search finds what was said before. Call it " +
  "alone, and not while you wait for other results.";

const NOTES =
  "What you need to go on without the older messages: the task and its state, decisions and their reasons, exact paths, names, " +
  "numbers and errors, and what is left to do. Several sentences.";

/** What the tools do by the options of an adapter. */
export interface OfferedTools {
  /** With the tool `new_context`. */
  handsOff: boolean;
  /** Searches look through all conversations of the store. */
  searchesAll: boolean;
}

/** `execute` answers a call of the tool `name`. */
export function recallTools(
  execute: (name: string, input: unknown, toolCallId: string) => Promise<string>,
  { handsOff, searchesAll }: OfferedTools,
): ExecutableRecallTools {
  const tool = (name: string, description: string, properties: object, required: string): ExecutableTool => ({
    description,
    inputSchema: schema({ type: "object", properties, required: [required], additionalProperties: false }),
    execute: (input, { toolCallId }: { toolCallId: string }) => execute(name, input, toolCallId),
  });
  const whole = (minimum: number, description: string) => ({ type: "integer", minimum, description });
  return {
    recall_read: tool(
      "recall_read",
      READ,
      {
        ref: { type: "string", description: REF },
        offset: whole(0, "Character to begin at; 0, the beginning, when left out."),
        limit: whole(1, "How many characters to read at most; as many as suit the context window when left out."),
      },
      "ref",
    ),
    recall_search: tool(
      "recall_search",
      searchesAll ? SEARCH + ALL : SEARCH,
      {
        query: {
          type: "string",
          description: "Words, names, paths or numbers that stand in the text you look for, as exactly as you know them.",
        },
        limit: whole(1, "How many passages at most; 10 when left out."),
      },
      "query",
    ),
    ...(handsOff && { new_context: tool("new_context", ANEW, { notes: { type: "string", description: NOTES } }, "notes") }),
  };
}

/** What the SDK's `jsonSchema` makes: without it, the SDK need not be imported. */
function schema(jsonSchema: object): object {
  return { [Symbol.for("vercel.ai.schema")]: true, _type: undefined, validate: undefined, jsonSchema };
}
