import { type BasisPoints, type Cents, cents, sum } from "../money/cents.js";
import { percentOf } from "../money/round.js";
import type { InvoiceTotals } from "../invoice/totals.js";

export interface CreditNote {
  readonly invoice: string;
  readonly groups: readonly { rate: BasisPoints; net: Cents; tax: Cents }[];
  readonly total: Cents;
}

/** Credits a share of an invoice. `share` is in basis points; 10000 credits all of it. */
export function creditNote(invoice: string, totals: InvoiceTotals, share: BasisPoints): CreditNote {
  const groups = totals.groups.map((group) => ({
    rate: group.rate,
    net: cents(-percentOf(group.net, share)),
    tax: cents(-percentOf(group.tax, share)),
  }));
  return { invoice, groups, total: sum(groups.flatMap((group) => [group.net, group.tax])) };
}
