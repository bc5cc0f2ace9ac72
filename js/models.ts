/** Facts about `model`: looked up where the options do not say the window themselves. */

import type { Catalogue } from "./catalogue.js";
import { invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import type { CompactOptions, ModelFacts, SessionOptions } from "./types.js";

let loading: Promise<Catalogue> | undefined;

/**
 * Looks up the window, longest answer and prices of a model, by its name at its provider or a gateway. The catalog is a
 * file of this package, loaded with the first call; no service is asked.
 *
 * Rejects with `unknown_model`, whose message lists similar names.
 */
export async function modelFacts(model: string): Promise<ModelFacts> {
  if (typeof model !== "string" || model.trim() === "") throw invalidOption("model", "must be a text that is not empty");
  return found(await catalogue(), model);
}

/** What the engine takes of them. */
export type UsedFacts = Partial<Pick<ModelFacts, "contextWindow" | "maxOutputTokens" | "prices">>;

/** The facts that these options need: none where they name no model, and no more than prices where they say the window. What is
 *  no name is the engine's to refuse. */
export async function factsFor(options: SessionOptions): Promise<UsedFacts | undefined> {
  const { model, prices, limits } = options;
  if (typeof model !== "string" || model.trim() === "") return undefined;
  if (!saysWindow(options)) return modelFacts(model);
  if (prices !== undefined || Object(limits).usd === undefined) return undefined;
  const known = (await modelFacts(model)).prices;
  return known && { prices: known };
}

/** Profiles say what a model takes, so they need no catalogue (`S5.12`). */
function saysWindow({ contextWindow, presetOptions }: CompactOptions): boolean {
  return contextWindow !== undefined || Boolean(presetOptions && "profiles" in presetOptions && presetOptions.profiles);
}

function catalogue(): Promise<Catalogue> {
  loading ??= load().catch((cause: unknown) => {
    // A later call may reach what this one could not.
    loading = undefined;
    const message = "The catalogue of models could not be loaded; give contextWindow to do without";
    throw new CompactionError("unknown_model", message, { cause });
  });
  return loading;
}

async function load(): Promise<Catalogue> {
  const { open } = await import("./catalogue.js");
  return open();
}

function found(catalogue: Catalogue, model: string): ModelFacts {
  const facts = catalogue.find(model);
  if (facts) return facts;
  const near = catalogue.near(model);
  const named = near.length > 0 ? `, such as ${near.join(", ")}` : "";
  const message = `Model not found: ${model}. Give contextWindow, or the name of a model that the catalogue has${named}`;
  throw new CompactionError("unknown_model", message, { field: "model" });
}
