/**
 * What is tortured: sessions of this library, and other libraries as they are installed (`engine/peers`, `@openai/agents`).
 * A policy is opened for a history and asked for each prompt; `read` gives a message of its own as those of Chat Completions.
 */

import { existsSync } from "node:fs";
import { openSession } from "context-compactor";
import { langchain, openaiAgents } from "context-compactor/formats";
import { runtime } from "../../tests/support/api.mjs";
import { PRICES } from "../front/bill.mjs";
import { fromItem, fromLangchain, fromModelMessage, toItems, toLangchain, toModelMessage } from "./shapes.mjs";

/** @typedef {import("./histories.mjs").History} History */
/** What a call is sent: `prompt` takes what came since the last one, and `fits` whether the provider would take what it makes.
 *  @typedef {{ prompt(added: object[], fits: (messages: object[]) => boolean): Promise<object[]>, end?(): Promise<void> }} Opened */
/**
 * `claims`: which questions the library says that it answers. `format`: of its messages, for `validateHistory`.
 * @typedef {{ name: string, by: string, claims: { limit: boolean, valid: boolean, rules: boolean }, format: any,
 *   read: (message: any) => object[], open(history: History, ask: (prompt: string, length?: number) => string): Promise<Opened> }} Policy
 */

const ALL = { limit: true, valid: true, rules: true };
const peers = new URL("../engine/peers/node_modules/", import.meta.url);
const agents = new URL("@openai/agents-core/dist/index.mjs", new URL("../../node_modules/", import.meta.url));

/** Of the window, where a trigger is that fits it, and what it leaves. */
const [ACTS, LEAVES] = [0.6, 0.3];

const chat = (message) => [message];

/** A session, driven as an app drives it: `force` after a prompt that the provider would refuse. */
function ours(name, options, withModel = true) {
  return {
    name,
    by: "context-compactor",
    claims: ALL,
    format: "openai-chat",
    read: chat,
    async open({ contextWindow, stable, answer }, ask) {
      const summarize = withModel ? async ({ system, messages, targetTokens }) => ask([system, ...messages.map(({ content }) => content)].join("\n"), targetTokens) : "extractive";
      const session = await openSession({
        store: "memory",
        format: "openai-chat",
        contextWindow,
        reserveTokens: stable,
        maxOutputTokens: answer,
        prices: PRICES,
        logger: () => {},
        summarize,
        // No time goes by between attempts, and references take as many tokens in every run.
        advanced: { retryWaitMs: 0, runtime: runtime() },
        ...options,
      });
      return {
        async prompt(added, fits) {
          await session.append(...added);
          const { messages } = await session.prepare();
          return fits(messages) ? messages : (await session.prepare({ force: true })).messages;
        },
        end: () => session.close({ delete: true }),
      };
    },
  };
}

const PRESETS = ["balanced", "offload", "layered", "factor3", "checkpoint"];
const sessions = [
  ...PRESETS.map((preset) => ours(preset, { preset })),
  ours("balanced, economy", { economy: true }),
  ...PRESETS.map((preset) => ours(`${preset}, extractive`, { preset }, false)),
  ours("balanced, economy, extractive", { economy: true }, false),
  ours("react", { preset: "react" }),
];

/** Every message as it came, for comparison: what is invalid here was so before anybody made it shorter. */
const none = {
  name: "nothing is done",
  by: "",
  claims: { limit: false, valid: false, rules: true },
  format: "openai-chat",
  read: chat,
  async open() {
    const all = [];
    return { prompt: async (added) => (all.push(...added), [...all]) };
  },
};

/** Messages of LangChain, which a hook may replace. */
async function langchainOf(history, ask, hookOf) {
  const core = await import(new URL("@langchain/core/dist/messages/index.js", peers));
  const model = { invoke: async (prompt) => new core.AIMessage(ask(typeof prompt === "string" ? prompt : prompt.map(({ content }) => content).join("\n"))), profile: { maxInputTokens: history.contextWindow } };
  const hook = await hookOf(core, model);
  const shape = toLangchain(core);
  return { prompt: (added, fits) => hook(added.map(shape), fits) };
}

const LANGCHAIN = { format: langchain, read: fromLangchain };

/** What `trimMessages` is given is what it says, and the messages of the app stay whole. */
function trim(name, options, claims) {
  return {
    name: `trimMessages, ${name}`,
    by: "@langchain/core",
    claims,
    ...LANGCHAIN,
    open: (history, ask) =>
      langchainOf(history, ask, async (core) => {
        const { countTokensApproximately } = await import(new URL("langchain/dist/agents/middleware/utils.js", peers));
        const all = [];
        return async (added) => {
          all.push(...added);
          return core.trimMessages(all, { tokenCounter: countTokensApproximately, ...options(history) });
        };
      }),
  };
}

function summarization(name, options) {
  return {
    name: `summarizationMiddleware, ${name}`,
    by: "langchain",
    claims: ALL,
    ...LANGCHAIN,
    open: (history, ask) =>
      langchainOf(history, ask, async (_, model) => {
        const { summarizationMiddleware } = await import(new URL("langchain/dist/index.js", peers));
        const middleware = summarizationMiddleware({ model, ...options(history) });
        let state = [];
        return async (added) => {
          state.push(...added);
          const update = await middleware.beforeModel({ messages: state }, { context: {} });
          if (update) state = update.messages.slice(1);
          return [...state];
        };
      }),
  };
}

function deepagents(name, options) {
  return {
    name: `deepagents' summarization, ${name}`,
    by: "deepagents",
    claims: ALL,
    ...LANGCHAIN,
    open: (history, ask) =>
      langchainOf(history, ask, async (core, model) => {
        const { createSummarizationMiddleware } = await import(new URL("deepagents/dist/index.js", peers));
        const { ContextOverflowError } = await import(new URL("@langchain/core/dist/errors/index.js", peers));
        const middleware = createSummarizationMiddleware({ model, backend: memoryBackend(), ...options(history) });
        // It counts the system prompt, by four characters a token.
        const systemMessage = new core.SystemMessage("word".repeat(history.stable));
        const messages = [];
        let state = {};
        return async (added, fits) => {
          messages.push(...added);
          let sent;
          const handler = async (request) => {
            sent = request.messages;
            if (!fits(sent)) throw new ContextOverflowError("the prompt is too long");
            return new core.AIMessage("");
          };
          try {
            const answer = await middleware.wrapModelCall({ messages, state, model, systemMessage, tools: [] }, handler);
            if (answer?.update) state = { ...state, ...answer.update };
          } catch (error) {
            // A prompt that the provider refuses was made all the same.
            if (!ContextOverflowError.isInstance(error)) throw error;
          }
          return sent;
        };
      }),
  };
}

/** Where deepagents writes what it summarizes: memory. */
function memoryBackend() {
  const files = new Map();
  const bytes = (text) => new TextEncoder().encode(text);
  const backend = {
    downloadFiles: async (paths) => paths.map((path) => ({ path, content: files.get(path), error: null })),
    uploadFiles: async (given) => given.map(([path, content]) => (files.set(path, content), { path, error: null })),
    write: async (path, text) => (files.set(path, bytes(text)), { path }),
  };
  for (const name of ["ls", "read", "readRaw", "grep", "glob", "edit"]) backend[name] = async () => ({});
  return backend;
}

function prune(name, options, isDue = () => true) {
  return {
    name: `pruneMessages, ${name}`,
    by: "ai",
    claims: { limit: false, valid: true, rules: false },
    format: "ai-sdk",
    read: fromModelMessage,
    async open(history) {
      const { pruneMessages } = await import(new URL("ai/dist/index.js", peers));
      const shape = toModelMessage();
      const all = [];
      return {
        async prompt(added) {
          all.push(...added.map(shape));
          return isDue(all, history) ? pruneMessages({ messages: all, ...options }) : [...all];
        },
      };
    },
  };
}

const memorySession = {
  name: "MemorySession",
  by: "@openai/agents",
  claims: { limit: false, valid: false, rules: true },
  format: openaiAgents,
  read: fromItem,
  async open() {
    const { MemorySession } = await import(agents);
    const [session, shape] = [new MemorySession(), toItems()];
    const known = new Map();
    return {
      async prompt(added) {
        await session.addItems(added.flatMap(shape));
        // It returns copies; the same is counted once.
        return (await session.getItems()).map((item, at) => known.get(at) ?? (known.set(at, item), item));
      },
    };
  },
};

const characters = (messages) => messages.reduce((sum, message) => sum + JSON.stringify(message.content).length, 0);
const room = ({ contextWindow, stable, answer }) => contextWindow - stable - answer;

const others = [
  trim("to the window", ({ contextWindow }) => ({ maxTokens: contextWindow, strategy: "last" }), { limit: true, valid: false, rules: false }),
  trim("fitted", (history) => ({ maxTokens: Math.floor(ACTS * room(history)), strategy: "last", startOn: "human" }), { limit: true, valid: true, rules: false }),
  summarization("as documented", () => ({ trigger: { tokens: 4_000 }, keep: { messages: 20 } })),
  summarization("fitted", (history) => ({ trigger: { tokens: Math.floor(ACTS * room(history)) }, keep: { tokens: Math.floor(LEAVES * room(history)) } })),
  deepagents("defaults", () => ({})),
  deepagents("fitted", (history) => ({
    trigger: { type: "tokens", value: Math.floor(history.stable + ACTS * room(history)) },
    keep: { type: "tokens", value: Math.floor(LEAVES * room(history)) },
  })),
  prune("as documented", { reasoning: "before-last-message", toolCalls: "before-last-2-messages", emptyMessages: "remove" }),
  prune("fitted", { reasoning: "all", toolCalls: "before-last-message" }, (all, history) => characters(all) / 4 > ACTS * room(history)),
];

/** The policies, and why some that could be there are not. @returns {{ policies: Policy[], missing: string[] }} */
export function policiesOf() {
  const isThere = existsSync(new URL(".package-lock.json", peers));
  const missing = isThere ? [] : ["LangChain, the AI SDK and deepagents: `npm ci` in bench/engine/peers installs them"];
  return { policies: /** @type {Policy[]} */ ([none, ...sessions, ...(isThere ? others : []), memorySession]), missing };
}
