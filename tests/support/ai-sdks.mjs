/** Both majors of the AI SDK, and what differs between them: the names of the system prompt and of an app's own context. */

import * as ai6 from "ai6";
import { createAnthropic as anthropic6 } from "ai6-anthropic";
import { createOpenAI as openai6 } from "ai6-openai";
import * as ai7 from "ai7";
import { createAnthropic as anthropic7 } from "ai7-anthropic";
import { createOpenAI as openai7 } from "ai7-openai";

globalThis.AI_SDK_LOG_WARNINGS = false;

export const AI_SDKS = {
  6: { sdk: ai6, createOpenAI: openai6, createAnthropic: anthropic6, system: "system", context: "experimental_context" },
  7: { sdk: ai7, createOpenAI: openai7, createAnthropic: anthropic7, system: "instructions", context: "runtimeContext" },
};
