/**
 * What catalogues know about models. Never part of the main code: `models.ts` imports it when it is first needed, and the
 * build makes one file of it and the catalogues.
 */

import { calcPrice, findProvider, waitForUpdate, type ModelPrice } from "@pydantic/genai-prices";
import { distance } from "fastest-levenshtein";
import { MODEL_CONFIGS, type ModelConfig } from "llm-zoo";
import type { ModelFacts, ModelPrices, TokenPrices } from "./types.js";

export interface Catalogue {
  /** The facts of a model; undefined where nobody knows it, or nobody knows its window. */
  find(model: string): ModelFacts | undefined;
  /** The names of known models that look most like this one, the nearest first; none where none looks like it. */
  near(model: string): string[];
}

/** Prices, windows, and the rules for names, of `@pydantic/genai-prices`; the most that a model answers, of `llm-zoo`. */
export const SOURCE = "@pydantic/genai-prices 0.1.8, llm-zoo 1.37.0";

/** How many names an error lists. */
const NEAR = 3;

/** Makes what it needs of the catalogues ready. */
export async function open(): Promise<Catalogue> {
  // Without an update under way these are the catalogue's own.
  const providers = (await waitForUpdate()) ?? [];
  // What was retired may have the name of what is served now.
  const configs = Object.values(MODEL_CONFIGS).sort((a, b) => Number(a.retired ?? false) - Number(b.retired ?? false));
  const byName = new Map<string, ModelConfig>();
  for (const config of configs) {
    for (const name of [config.fullName, config.shortName, config.openrouterFullName]) {
      if (name && !byName.has(name.toLowerCase())) byName.set(name.toLowerCase(), config);
    }
  }
  const find = (model: string) => factsOf(model, (name) => byName.get(name.toLowerCase()));
  const names = () => {
    const ids = providers.flatMap(({ models }) => models.filter((one) => one.context_window).map(({ id }) => id));
    return new Set([...ids.map((id) => id.toLowerCase()), ...byName.keys()]);
  };
  const near = (model: string) => {
    const wanted = model.toLowerCase();
    const close = [...names()]
      .map((name) => ({ name, steps: distance(wanted, name) }))
      .filter(({ steps }) => steps <= wanted.length / 2)
      .sort((a, b) => a.steps - b.steps || (a.name < b.name ? -1 : 1));
    const found: string[] = [];
    for (const { name } of close) {
      // An id of one provider may have no rule that takes it without the provider's name.
      if (find(name)) found.push(name);
      if (found.length === NEAR) break;
    }
    return found;
  };
  return { find, near };
}

function factsOf(model: string, configOf: (name: string) => ModelConfig | undefined): ModelFacts | undefined {
  const { found, bare } = priced(model);
  const config = [model, bare, found?.model.id].map((name) => name && configOf(name)).find(Boolean) || undefined;
  const contextWindow = found?.model.context_window ?? config?.contextWindow;
  if (contextWindow === undefined) return undefined;
  const prices = found ? pricesOf(found.model_price) : config && { input: config.inputPrice, output: config.outputPrice };
  return {
    model: found?.model.id ?? config?.fullName ?? model,
    provider: found?.provider.id ?? config?.provider ?? "",
    contextWindow,
    ...(config ? { maxOutputTokens: config.maxOutputTokens } : {}),
    ...(prices ? { prices } : {}),
    source: SOURCE,
  };
}

/** The entry of a model as it is named by its provider, by a gateway (`openai/gpt-5`, `openai:gpt-5`), or by OpenRouter. */
function priced(model: string) {
  const [, provider = "", bare = model] = /^([\w.-]+)[/:](.+)$/.exec(model) ?? [];
  const asked = [
    { name: model, providerId: undefined },
    // Gemini's own name for it.
    ...(provider === "models" ? [{ name: bare, providerId: undefined }] : []),
    ...(provider !== "" && findProvider({ providerId: provider }) ? [{ name: bare, providerId: provider }] : []),
    ...(model.includes("/") ? [{ name: model, providerId: "openrouter" }] : []),
  ];
  for (const { name, providerId } of asked) {
    const found = calcPrice({}, name, providerId === undefined ? {} : { providerId });
    if (found) return { found, bare };
  }
  return { found: undefined, bare };
}

/** Prices in USD per million tokens, and as they are above each size of a prompt. */
function pricesOf(price: ModelPrice): ModelPrices | undefined {
  const units = [price.input_mtok, price.output_mtok, price.cache_read_mtok, price.cache_write_mtok] as const;
  const starts = units.flatMap((unit) => (typeof unit === "object" ? unit.tiers.map(({ start }) => start) : []));
  const base = pricesAbove(units, -1);
  if (!base) return undefined;
  const tiers = [...new Set(starts)]
    .sort((a, b) => a - b)
    .flatMap((above) => {
      const prices = pricesAbove(units, above);
      return prices ? [{ above, ...prices }] : [];
    });
  return tiers.length > 0 ? { ...base, tiers } : base;
}

function pricesAbove(units: readonly ModelPrice[string][], above: number): TokenPrices | undefined {
  const [input, output, cacheRead, cacheWrite] = units.map((unit) => {
    if (typeof unit !== "object") return unit;
    // In the order of where they start; the last that is reached holds.
    return unit.tiers.reduce((price, tier) => (tier.start <= above ? tier.price : price), unit.base);
  });
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  };
}
