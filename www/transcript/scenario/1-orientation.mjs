import { ledgerTotal } from "../lib/invoices.mjs";
import { fileListing, psql, reconcileLog, vitest } from "../lib/terminal.mjs";

/** The task, its constraints, and a first look around. */
export function orientation({ run, ws, random, invoices, sample }) {
  run.system(
    "You are a coding agent working in the repository `invoicing`. You have a shell, file tools and read-only web access. " +
      "Work in small steps, run the tests after every change, and say what you found before you change anything. " +
      "Ask before anything that cannot be undone.",
  );
  run.user(
    `Morning. Support escalated ${sample.number}: the PDF says one total, our ledger booked another, one cent apart. The customer's bookkeeper rejects the invoice. ` +
      `The nightly reconciliation has found more of them since the discount feature shipped.\n\n` +
      `Please find out why, fix it, and get it ready for review. Ground rules, they hold for the whole task:\n\n` +
      `1. Never touch the public API: nothing in src/api, nothing in openapi.yaml. Partners validate strictly, a new field breaks them.\n` +
      `2. Amounts stay integer cents end to end. No floats, no toFixed, not even "just for the comparison".\n` +
      `3. Rounding is what Finance signed off in FIN-212. If the ticket and the code disagree, the ticket is right.\n` +
      `4. Invoices that customers already hold are never recomputed. Their totals are a legal document.\n` +
      `5. Database work only against the staging copy on port 5433. Never edit a migration that has run.\n` +
      `6. No new runtime dependencies.\n\n` +
      `There is also a flaky dunning test that blocks our merges about once a day. If you get to it, good. Separate commit.`,
  );
  run.step(
    "I'll start with the layout and the rules of the repository, then reproduce the difference before I form an opinion.",
    ["bash", { command: "find . -type f -not -path './node_modules/*' -not -path './.git/*' -printf '%M %8s %TY-%Tm-%Td %P\\n'" }, fileListing(random)],
    ["read_file", { path: "CONTRIBUTING.md" }, ws.show("CONTRIBUTING.md")],
  );
  run.step(
    "",
    ["read_file", { path: "README.md" }, ws.show("README.md")],
    ["read_file", { path: "package.json" }, ws.show("package.json")],
  );
  run.step(
    "CONTRIBUTING.md repeats most of your rules, and adds that the tests must not read the wall clock. Remember that for the flaky test. Now the money code.",
    ["read_file", { path: "src/money/cents.ts" }, ws.show("src/money/cents.ts")],
    ["read_file", { path: "src/money/round.ts" }, ws.show("src/money/round.ts")],
    ["read_file", { path: "src/invoice/totals.ts" }, ws.show("src/invoice/totals.ts")],
  );
  run.step(
    "Two suspects already: `Math.round` is half-up (and asymmetric for negative amounts), and the discount is rounded twice, once on the subtotal and once per tax group. Before I trust that, the rule itself:",
    ["bash", { command: "grep -rln 'FIN-212' --include='*.md' --include='*.ts' ." }, "./CONTRIBUTING.md\n./docs/adr/0007-rounding.md"],
    ["read_file", { path: "docs/adr/0007-rounding.md" }, ws.show("docs/adr/0007-rounding.md")],
  );
  run.step(
    "The ADR is precise: round the discount once, share it out by largest remainder, tax half-even once per group. The code does neither. Next: who consumes these totals?",
    ["grep", { pattern: "invoiceTotals|percentOf|totals\\.(total|discount|tax)", path: "." }, ws.grep("invoiceTotals|percentOf|totals\\.(total|discount|tax)")],
    ["read_file", { path: "src/ledger/post.ts" }, ws.show("src/ledger/post.ts")],
    ["read_file", { path: "src/invoice/pdf.ts" }, ws.show("src/invoice/pdf.ts")],
  );
  run.step(
    "So the PDF prints `totals.total` (subtotal − discount + tax) and the ledger sums the groups. With one tax rate these agree. With two rates and a discount they can differ by a cent. Let me see last night's job and the invoice that support named.",
    ["read_file", { path: "src/jobs/reconcile.ts" }, ws.show("src/jobs/reconcile.ts")],
    ["bash", { command: "kubectl logs job/reconcile-29314080 --tail=400" }, reconcileLog(random, invoices, "2025-10-01")],
  );
  const payload = {
    number: sample.number,
    customer: { name: sample.customer, country: "DE", vatId: "DE000000000", locale: "de-DE", timeZone: "Europe/Berlin" },
    currency: sample.currency,
    issuedOn: sample.issuedOn,
    discountRateBp: sample.draft.discountRate,
    reverseCharge: sample.draft.reverseCharge,
    lines: sample.draft.lines.map((line, i) => ({ position: i + 1, sku: line.sku, description: line.description, quantityThousandths: line.quantity, unitPriceCents: line.unitPrice, taxRateBp: line.taxRate })),
    printed: { subtotalCents: sample.old.subtotal, discountCents: sample.old.discount, taxCents: sample.old.tax, totalCents: sample.old.total },
    journal: { receivableCents: ledgerTotal(sample.old), groups: sample.old.groups.map(({ rate, net, discount, tax }) => ({ rateBp: rate, netCents: net, discountCents: discount, taxCents: tax })) },
  };
  const shares = sample.old.groups.map(({ discount }) => discount);
  run.step(
    "",
    ["http_request", { method: "GET", url: `http://staging.internal:8080/internal/invoices/${sample.number}?include=lines,journal` }, `HTTP/1.1 200 OK\ncontent-type: application/json; charset=utf-8\nx-schema-version: 42\n\n${JSON.stringify(payload, null, 2)}`],
  );
  run.say(
    `Reproduced on paper. ${sample.number}: the subtotal is ${sample.old.subtotal}, the discount of ${sample.draft.discountRate} bp is printed as ${sample.old.discount}. ` +
      `The shares per tax group are ${shares.join(" + ")} = ${shares.reduce((a, b) => a + b, 0)}. That is the missing cent: the printed total is ${sample.old.total}, the ledger's receivable is ${ledgerTotal(sample.old)}.\n\n` +
      `So it is not the PDF and not the ledger: \`invoiceTotals\` rounds the same discount in two ways. Shall I size it in the staging copy before I change code?`,
  );
  run.user(
    "Yes please, size it. And while you are there: the reverse-charge customers must keep showing the nominal rate (\"19 % (reverse charge)\"). The last person who cleaned up totals.ts merged them into a 0 % group and the tax authority's check failed. Never merge them.",
  );
  const wrong = invoices.filter(({ old }) => ledgerTotal(old) !== old.total);
  run.step(
    "Noted: reverse-charge groups keep their nominal rate, tax 0, never merged. Sizing it on the staging copy (5433), read-only:",
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT i.number, i.issued_on, c.name AS customer, i.discount_bp, i.printed_total_cents AS printed, j.receivable_cents AS ledger, i.printed_total_cents - j.receivable_cents AS diff FROM invoices i JOIN customers c USING (customer_id) JOIN journal_totals j ON j.invoice_number = i.number WHERE i.printed_total_cents <> j.receivable_cents ORDER BY i.number" },
      psql(["number", "issued_on", "customer", "discount_bp", "printed", "ledger", "diff"], wrong.map((invoice) => [invoice.number, invoice.issuedOn, invoice.customer, invoice.draft.discountRate, invoice.old.total, ledgerTotal(invoice.old), invoice.old.total - ledgerTotal(invoice.old)]))],
    ["run_tests", { filter: "" }, vitest(random)],
  );
  run.say(
    `${wrong.length} of ${invoices.length} invoices issued in September differ, every one of them has a discount and two tax rates, and every difference is exactly one cent. The test suite is green, because no test has both a discount and two rates. That is the gap to close first.`,
  );
}
