import PDFDocument from "pdfkit";
import { formatCents } from "../money/cents.js";
import type { InvoiceTotals } from "./totals.js";

export interface PdfOptions {
  readonly number: string;
  readonly currency: string;
  readonly locale: string;
  readonly issuedOn: string;
}

/** Renders the totals block. The header, the lines and the footer are in `pdf-layout.ts`. */
export function renderTotals(doc: PDFKit.PDFDocument, totals: InvoiceTotals, options: PdfOptions): void {
  const money = (value: Parameters<typeof formatCents>[0]) => formatCents(value, options.currency, options.locale);
  const rows: [string, string][] = [["Subtotal", money(totals.subtotal)]];
  if (totals.discount !== 0) rows.push(["Discount", `−${money(totals.discount)}`]);
  for (const group of totals.groups) {
    rows.push([`VAT ${group.rate / 100} % on ${money(group.net)}`, money(group.tax)]);
  }
  rows.push(["Total due", money(totals.total)]);

  for (const [label, amount] of rows) {
    doc.text(label, { continued: true, align: "left" }).text(amount, { align: "right" });
  }
}

export function newDocument(): PDFKit.PDFDocument {
  return new PDFDocument({ size: "A4", margin: 56, info: { Producer: "invoicing" } });
}
