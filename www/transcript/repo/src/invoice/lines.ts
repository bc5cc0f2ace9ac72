import { type BasisPoints, type Cents, cents } from "../money/cents.js";

export interface InvoiceLine {
  readonly sku: string;
  readonly description: string;
  /** Thousandths of a unit: 1.5 hours is 1500. */
  readonly quantity: number;
  readonly unitPrice: Cents;
  readonly taxRate: BasisPoints;
}

/** Net amount of one line before the invoice's discount. */
export function lineNet(line: InvoiceLine): Cents {
  const thousandths = line.quantity * line.unitPrice;
  const whole = Math.trunc(thousandths / 1000);
  const rest = Math.abs(thousandths % 1000);
  if (rest < 500 || (rest === 500 && whole % 2 === 0)) return cents(whole);
  return cents(whole + Math.sign(thousandths));
}

/** Lines by tax rate, in the order in which the rates first appear. */
export function byTaxRate(lines: readonly InvoiceLine[]): Map<BasisPoints, InvoiceLine[]> {
  const groups = new Map<BasisPoints, InvoiceLine[]>();
  for (const line of lines) {
    const group = groups.get(line.taxRate);
    if (group) group.push(line);
    else groups.set(line.taxRate, [line]);
  }
  return groups;
}
