declare const brand: unique symbol;

/** An amount of money in integer cents. May be negative (credit notes). */
export type Cents = number & { readonly [brand]: "cents" };
/** A rate in integer basis points: 1900 is 19 %. */
export type BasisPoints = number & { readonly [brand]: "bp" };

export const ZERO = 0 as Cents;

export function cents(value: number): Cents {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not an integer amount of cents: ${value}`);
  return value as Cents;
}

export function add(a: Cents, b: Cents): Cents {
  return cents(a + b);
}

export function sum(values: readonly Cents[]): Cents {
  return values.reduce(add, ZERO);
}

/** "1234.50" → 123450. Accepts at most two decimals and an optional sign. */
export function parseCents(text: string): Cents {
  const match = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(text.trim());
  if (!match) throw new SyntaxError(`not an amount: ${JSON.stringify(text)}`);
  const [, sign, whole, fraction = ""] = match;
  const value = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return cents(sign ? -value : value);
}

export function formatCents(value: Cents, currency: string, locale = "en-IE"): string {
  return new Intl.NumberFormat(locale, { style: "currency", currency }).format(value / 100);
}
