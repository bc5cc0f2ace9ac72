import { type Cents, cents, sum } from "../money/cents.js";
import type { InvoiceTotals } from "../invoice/totals.js";

export interface JournalRow {
  readonly account: string;
  readonly debit: Cents;
  readonly credit: Cents;
}

const RECEIVABLES = "1200";
const REVENUE = "4000";
const OUTPUT_TAX = "2300";

/** One balanced journal entry: receivables against revenue and output tax, per tax group. */
export function journalEntry(totals: InvoiceTotals): JournalRow[] {
  const rows: JournalRow[] = [];
  for (const group of totals.groups) {
    rows.push({ account: `${REVENUE}.${group.rate}`, debit: cents(0), credit: group.net });
    if (group.tax !== 0) rows.push({ account: `${OUTPUT_TAX}.${group.rate}`, debit: cents(0), credit: group.tax });
  }
  const due = sum(rows.map((row) => row.credit));
  rows.unshift({ account: RECEIVABLES, debit: due, credit: cents(0) });
  return rows;
}

export class UnbalancedEntry extends Error {
  constructor(readonly invoice: string, readonly debit: Cents, readonly credit: Cents) {
    super(`journal entry of ${invoice} does not balance: ${debit} debit, ${credit} credit`);
  }
}
