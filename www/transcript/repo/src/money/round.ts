import { type BasisPoints, type Cents, cents } from "./cents.js";

/** Share of an amount, rounded to cents. */
export function percentOf(amount: Cents, rate: BasisPoints): Cents {
  return cents(Math.round((amount * rate) / 10_000));
}
