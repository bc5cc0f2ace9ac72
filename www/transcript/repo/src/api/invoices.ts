import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { findInvoice } from "../invoice/repository.js";

/** Frozen: partners validate against this schema with `additionalProperties: false`. */
export const InvoiceResponse = z.strictObject({
  number: z.string(),
  currency: z.string().length(3),
  issuedOn: z.iso.date(),
  subtotalCents: z.int(),
  discountCents: z.int(),
  taxCents: z.int(),
  totalCents: z.int(),
  taxGroups: z.array(z.strictObject({ rateBp: z.int(), netCents: z.int(), taxCents: z.int() })),
});

export async function invoiceRoutes(app: FastifyInstance): Promise<void> {
  app.get<{ Params: { number: string } }>("/v2/invoices/:number", async (request, reply) => {
    const invoice = await findInvoice(app.pool, request.params.number);
    if (!invoice) return reply.code(404).send({ error: "invoice_not_found" });
    const { totals } = invoice;
    return InvoiceResponse.parse({
      number: invoice.number,
      currency: invoice.currency,
      issuedOn: invoice.issuedOn,
      subtotalCents: totals.subtotal,
      discountCents: totals.discount,
      taxCents: totals.tax,
      totalCents: totals.total,
      taxGroups: totals.groups.map(({ rate, net, tax }) => ({ rateBp: rate, netCents: net, taxCents: tax })),
    });
  });
}
