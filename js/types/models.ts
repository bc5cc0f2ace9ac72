/** Facts about models. */

/** Prices in USD per million tokens. */
export interface TokenPrices {
  /** Input tokens. */
  input: number;
  /** Output tokens. */
  output: number;
  /** Input tokens read from the provider's cache. */
  cacheRead?: number;
  /** Input tokens written to the provider's cache. */
  cacheWrite?: number;
}

/** Prices of a model, in USD per million tokens. */
export interface ModelPrices extends TokenPrices {
  /** Prices of all tokens of a request with more than `above` input tokens. The last tier that applies counts. */
  tiers?: (TokenPrices & { above: number })[];
}

/** Facts about a model, from the catalog in this package. */
export interface ModelFacts {
  /** The model's id in the catalog. */
  model: string;
  /** The provider's id in the catalog. */
  provider: string;
  /** The context window, in tokens. */
  contextWindow: number;
  /** The longest answer, in tokens; absent if unknown. */
  maxOutputTokens?: number;
  /** Prices as of this release; absent if unknown. */
  prices?: ModelPrices;
  /** The catalogs that these facts come from, with versions. */
  source: string;
}
