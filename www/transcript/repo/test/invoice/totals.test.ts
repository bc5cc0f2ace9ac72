import { describe, expect, it } from "vitest";
import { invoiceTotals } from "../../src/invoice/totals.js";
import { draft, line } from "../support/drafts.js";

describe("invoiceTotals", () => {
  it("adds up an invoice with one rate and no discount", () => {
    const totals = invoiceTotals(draft([line(2, 4_995, 1900), line(1, 12_000, 1900)]));
    expect(totals.subtotal).toBe(21_990);
    expect(totals.tax).toBe(4_178);
    expect(totals.total).toBe(26_168);
  });

  it("keeps tax groups apart", () => {
    const totals = invoiceTotals(draft([line(1, 10_000, 1900), line(1, 2_000, 700)]));
    expect(totals.groups.map((group) => [group.rate, group.tax])).toEqual([[1900, 1_900], [700, 140]]);
  });

  it("applies the discount before tax", () => {
    const totals = invoiceTotals(draft([line(1, 10_000, 1900)], { discountRate: 1000 }));
    expect(totals.discount).toBe(1_000);
    expect(totals.tax).toBe(1_710);
  });

  it("charges no tax under reverse charge", () => {
    const totals = invoiceTotals(draft([line(3, 3_333, 1900)], { reverseCharge: true }));
    expect(totals.tax).toBe(0);
    expect(totals.total).toBe(9_999);
  });
});
