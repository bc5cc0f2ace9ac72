/** Facts about models. */

/** USD for a million tokens. */
export interface TokenPrices {
  input: number;
  output: number;
  /** Of the input, what was read from the provider's cache. */
  cacheRead?: number;
  /** And what was written to it. */
  cacheWrite?: number;
}

export interface ModelPrices extends TokenPrices {
  /** What all tokens of a request cost whose input is larger than `above`; the last that is reached holds. */
  tiers?: (TokenPrices & { above: number })[];
}

/** What the catalogue knows about a model. */
export interface ModelFacts {
  /** Its id there. */
  model: string;
  /** Who serves it, by the id there. */
  provider: string;
  /** Tokens. */
  contextWindow: number;
  /** The most that it answers in one response, where that is known. */
  maxOutputTokens?: number;
  /** As they are today, where they are known. */
  prices?: ModelPrices;
  /** The catalogues, with their versions. */
  source: string;
}
