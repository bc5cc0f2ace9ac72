import { type BasisPoints, type Cents, add, cents, sum } from "../money/cents.js";
import { percentOf } from "../money/round.js";
import { type InvoiceLine, byTaxRate, lineNet } from "./lines.js";

export interface TaxGroup {
  readonly rate: BasisPoints;
  readonly net: Cents;
  readonly discount: Cents;
  readonly tax: Cents;
}

export interface InvoiceTotals {
  readonly subtotal: Cents;
  readonly discount: Cents;
  readonly groups: readonly TaxGroup[];
  readonly tax: Cents;
  readonly total: Cents;
}

export interface InvoiceDraft {
  readonly lines: readonly InvoiceLine[];
  readonly discountRate: BasisPoints;
  readonly reverseCharge: boolean;
}

export function invoiceTotals(draft: InvoiceDraft): InvoiceTotals {
  const subtotal = sum(draft.lines.map(lineNet));
  const discount = percentOf(subtotal, draft.discountRate);

  const groups: TaxGroup[] = [];
  for (const [rate, lines] of byTaxRate(draft.lines)) {
    const gross = sum(lines.map(lineNet));
    const share = percentOf(gross, draft.discountRate);
    const net = cents(gross - share);
    const tax = draft.reverseCharge ? cents(0) : percentOf(net, rate);
    groups.push({ rate, net, discount: share, tax });
  }

  const tax = sum(groups.map((group) => group.tax));
  return { subtotal, discount, groups, tax, total: add(cents(subtotal - discount), tax) };
}
