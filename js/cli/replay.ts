/** `replay`: the history call by call, under policies of compaction, and what each costs. */

import { openSession, type Message, type Preset } from "../entry/main.js";
import { Bill, Known, USUAL } from "./bill.js";
import { EXIT, wrongUsage } from "./exit.js";
import { hindsightOf, loadEvaluator, printHindsight } from "./hindsight.js";
import { readInput, type Input } from "./input.js";
import { aboutOf, firstLine, reported } from "./inspect.js";
import { fixedOf, windowOf, type Window } from "./meter.js";
import { writeReport } from "./report.js";
import { isAnswer } from "./said.js";
import { changeOf, dollars, number, type Terminal } from "./terminal.js";
import { meant, PRESETS, type Given } from "./usage.js";

/** A policy by its name: `none`, or a preset with the fraction of the window at which it compacts. */
interface Policy {
  name: string;
  preset?: Preset;
  fraction?: number;
}

/** What a policy came to. */
export interface Outcome {
  policy: string;
  calls: number;
  usd: number;
  cacheMisses: number;
  compactions: number;
  largestPrompt: number;
  /** Calls that the provider would have refused: the prompt was longer than the window. */
  refused: number;
  /** Why the policy could not go on, if it could not. */
  stopped?: string;
}

const USUALLY = ["none", "balanced@0.8", "balanced"];

/** What `replay` finds in a history, and the tokens of every prompt. */
export async function replayOf(input: Input, given: Given, terminal: Terminal) {
  const policies = policiesOf(given);
  const window = await windowOf(input, given);
  const stable = stableOf(input, window);
  const prices = window.prices ?? USUAL;
  const known = new Known(input.format);
  const prompts: Record<string, number[]> = {};
  const outcomes: Outcome[] = [];
  for (const policy of policies) {
    const bill = new Bill(known, prices, window.tokens, stable);
    outcomes.push(await outcomeOf(policy, { input, window, stable, bill }, (call) => terminal.progress(`${policy.name}: call ${call}`)));
    prompts[policy.name] = bill.prompts;
  }
  const found = {
    ...{ file: input.name, kind: input.kind, format: input.format, messages: input.messages.length },
    ...{ window: { tokens: window.tokens, assumed: window.assumed }, model: window.model, prices, systemTokens: stable, outcomes },
  };
  return { found, prompts, window, stable };
}

export async function replay(given: Given, terminal: Terminal): Promise<number> {
  policiesOf(given);
  const evaluator = given.optimum ? await loadEvaluator() : undefined;
  terminal.progress("reading");
  const input = await readInput(given.file, given.format);
  const { found, prompts, window, stable } = await replayOf(input, given, terminal);
  const hindsight = evaluator && (await hindsightOf(evaluator, input, { prices: found.prices, stable }, terminal));
  terminal.done();
  const { outcomes } = found;
  terminal.object("replay", { ...found, ...(hindsight ? { hindsight } : {}) });
  print({ input, window, stable, outcomes }, terminal);
  if (hindsight) printHindsight(hindsight, terminal);
  if (given.report !== undefined) {
    const about = [...aboutOf(input, window), pricesOf(window)];
    await writeReport(given.report, { file: input.name, about, outcomes, prompts, window: window.tokens, ...(hindsight ? { hindsight } : {}) }, given.redact);
    terminal.line(reported(given));
  }
  return EXIT.fine;
}

/** The policies that were asked for; a wrong name is found before anything is read. */
export const policiesOf = ({ policies = USUALLY }: Pick<Given, "policies">): Policy[] => policies.map(policyOf);

function policyOf(name: string): Policy {
  if (name === "none") return { name };
  const [, preset = "", at] = /^([\w-]+)(?:@(.+))?$/.exec(name) ?? [];
  const fraction = at === undefined ? undefined : Number(at);
  if (!PRESETS.includes(preset as Preset)) throw wrongUsage(`--policies: ${name}${meant(preset, ["none", ...PRESETS])}; there are none, and ${PRESETS.join(", ")}, each also as ${PRESETS[0]}@0.8`);
  if (fraction !== undefined && !(fraction > 0 && fraction < 1)) throw wrongUsage(`--policies: ${name}: behind @ is the fraction of the window at which it compacts, as in ${preset}@0.8`);
  return { name, preset: preset as Preset, ...(fraction === undefined ? {} : { fraction }) };
}

/** Tokens of the system prompt and the tools: what the file has, else what agents have. */
function stableOf(input: Input, { tokens }: Window): number {
  const { system, tools } = fixedOf(input);
  const isAgent = input.kind === "claude-code" || input.kind === "codex";
  return system + tools > 0 || !isAgent ? system + tools : Math.min(20_000, Math.round(tokens / 10));
}

/** Said of a history that nothing can be replayed of. */
export const NO_CALL = "The history has no answer of a model: there is no call to replay.";

interface Replayed {
  input: Input;
  window: Window;
  stable: number;
  bill: Bill;
}

async function outcomeOf(policy: Policy, replayed: Replayed, onCall: (call: number) => void): Promise<Outcome> {
  const { input, bill } = replayed;
  const { messages } = input;
  const session = policy.preset === undefined ? undefined : await open(policy.preset, policy.fraction, replayed);
  let [from, compactions] = [0, 0];
  let stopped: string | undefined;
  try {
    for (let at = 1; at < messages.length; at++) {
      if (!isAnswer(messages[at] as Message) || isAnswer(messages[at - 1] as Message)) continue;
      let end = at + 1;
      while (end < messages.length && isAnswer(messages[end] as Message)) end++;
      let sent: readonly Message[] = messages.slice(0, at);
      if (session) {
        const prepared = await session.prepare({ append: messages.slice(from, at) });
        from = at;
        sent = prepared.messages;
        if (prepared.edits.some(({ kind }) => kind !== "repair")) compactions++;
      }
      bill.add(sent, messages.slice(at, end));
      if (bill.calls % 8 === 0) onCall(bill.calls);
    }
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code !== "context_overflow") throw error;
    stopped = message;
  } finally {
    await session?.close({ delete: true });
  }
  const { calls, cost, misses, largest, refused } = bill;
  return {
    ...{ policy: policy.name, calls, usd: Math.round(cost * 1e6) / 1e6, cacheMisses: misses, compactions, largestPrompt: Math.round(largest), refused },
    ...(stopped === undefined ? {} : { stopped }),
  };
}

function open(preset: Preset, fraction: number | undefined, { input, window, stable }: Replayed): ReturnType<typeof openSession> {
  let [time, ids] = [Date.UTC(2026, 0, 1), 0];
  return openSession({
    ...{ preset, format: input.format, store: "memory", contextWindow: window.tokens, reserveTokens: stable },
    ...{ prices: window.prices ?? USUAL, summarize: "extractive", background: false, logger: () => {} },
    ...(fraction === undefined ? {} : { compactAt: { fraction } }),
    // The same history costs the same, whenever it is replayed.
    advanced: { runtime: { now: () => (time += 1_000), id: () => `replay-${++ids}` } },
  });
}

function pricesOf({ prices, model }: Window): string {
  const { input, output, cacheRead = input, cacheWrite = input } = prices ?? USUAL;
  return `USD per million: input ${input}, output ${output}, cache read ${cacheRead}, cache write ${cacheWrite}${prices ? ` (${model})` : " (assumed: give --model)"}`;
}

function print({ input, window, stable, outcomes }: { input: Input; window: Window; stable: number; outcomes: readonly Outcome[] }, terminal: Terminal): void {
  terminal.line(firstLine(input));
  terminal.line(`  window ${number(window.tokens)}${window.assumed ? " (assumed: give --window or --model)" : ""}; system prompt and tools ${number(stable)}`);
  terminal.line(`  ${pricesOf(window)}`);
  terminal.line();
  const first = outcomes[0]?.usd ?? 0;
  const rows = outcomes.map(({ policy, calls, usd, cacheMisses, compactions, largestPrompt, refused, stopped }) => {
    return [policy, number(calls), dollars(usd), policy === outcomes[0]?.policy ? "" : changeOf(usd, first), number(cacheMisses), number(compactions), number(largestPrompt), number(refused), stopped ? "stopped" : ""];
  });
  const align = ["left", ...Array.from({ length: 7 }, () => "right" as const)] as ("left" | "right")[];
  terminal.table([["policy", "calls", "cost", "", "cache misses", "compactions", "largest prompt", "refused", ""], ...rows], align);
  if (outcomes[0]?.calls === 0) terminal.line(terminal.paint("yellow", `  ${NO_CALL}`));
  for (const { policy, stopped } of outcomes) if (stopped !== undefined) terminal.line(terminal.paint("yellow", `  ${policy}: ${stopped}`));
  terminal.line();
  terminal.line(terminal.paint("dim", "  The prompts are those of the engine. Summaries are its own, without a model, and cost nothing; answers are those of the"));
  terminal.line(terminal.paint("dim", "  history. Refused: calls whose prompt is longer than the window. What a policy lacks later is not in the cost."));
}
