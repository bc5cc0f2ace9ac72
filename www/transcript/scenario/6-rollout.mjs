import { newTotals } from "../lib/invoices.mjs";
import { psql } from "../lib/terminal.mjs";

/** Approved and rolled out: the agent watches, and is asked what it still knows. */
export function rollout({ run, random, invoices, sample }) {
  run.user(
    "Approved and merged. 0043 ran in production at 05:31 UTC (two retries, no errors), the code is on the canary since 06:00, 10 % of the traffic. Please watch it for an hour, read-only. I want to hear about anything that is not a rounding difference, too.",
  );
  const minute = (i) => `06:${String(i % 60).padStart(2, "0")}`;
  run.step(
    "Watching. First hour of the canary next to the stable pods, then the canary's own log.",
    ["metrics_query", { query: "invoices_issued, totals_ms_p99, http_5xx, ledger_mismatch by (track)", range: "60m", step: "2m" },
      psql(["minute", "canary_issued", "canary_p99_ms", "canary_5xx", "canary_mismatch", "stable_issued", "stable_p99_ms", "stable_5xx", "stable_mismatch"],
        Array.from({ length: 30 }, (_, i) => [minute(i * 2), random.int(22, 41), Number((1.1 + random.next() * 0.5).toFixed(2)), 0, 0, random.int(240, 330), Number((1.0 + random.next() * 0.5).toFixed(2)), i === 17 ? 3 : 0, random.int(0, 3)]))],
    ["bash", { command: "kubectl logs deploy/invoicing-canary --since=60m | jq -c 'select(.level >= 30)'" },
      Array.from({ length: 96 }, (_, i) => {
        const invoice = invoices[(i * 7) % invoices.length];
        const totals = newTotals(invoice.draft);
        const time = Date.parse("2025-10-07T06:00:04Z") + i * 37_211 + random.int(0, 900);
        if (i === 41 || i === 67) return JSON.stringify({ level: 40, time, pid: 1, name: "invoicing", track: "canary", reqId: `req-${random.id(6)}`, msg: "partner sent an unknown customer time zone, using the country's default", timeZone: "Europe/Kyiv " });
        return JSON.stringify({ level: 30, time, pid: 1, name: "invoicing", track: "canary", reqId: `req-${random.id(6)}`, number: `INV-2025-${String(41_807 + i).padStart(6, "0")}`, roundingVersion: 2, subtotal: totals.subtotal, discount: totals.discount, tax: totals.tax, total: totals.total, ms: random.int(2, 19), msg: "invoice issued" });
      }).join("\n")],
  );
  run.say(
    "No mismatch on the canary in an hour (the stable pods had 0 to 3 every two minutes, as before), p99 the same, no 5xx. Two things that are not rounding: a partner sends the time zone `\"Europe/Kyiv \"` with a trailing space, and the code falls back to the country's default. It is harmless here, but reminders depend on that zone since today. And the three 5xx at 06:34 were on the *stable* track: the payment webhook's certificate rotation, unrelated to this change.",
  );
  run.user("Good. Accounting wants to be sure that the DATEV export of the canary's invoices balances. Can you check it to the cent?");
  const booked = invoices.slice(0, 72).flatMap((invoice, i) => {
    const totals = newTotals(invoice.draft);
    const number = `INV-2025-${String(41_807 + i).padStart(6, "0")}`;
    return [
      [totals.total, "S", 1200, "", number, invoice.customer],
      ...totals.groups.flatMap(({ rate, net, tax }) => [[net, "H", 4000, rate, number, invoice.customer], ...(tax > 0 ? [[tax, "H", 2300, rate, number, invoice.customer]] : [])]),
    ];
  });
  const total = (side) => booked.filter((row) => row[1] === side).reduce((sum, row) => sum + row[0], 0);
  run.step(
    "Reading the export as integers of cents; a CSV with a decimal comma is parsed digit by digit, never through a float (rule 2).",
    ["bash", { command: "node --import tsx src/ledger/export-datev.ts --track canary --day 2025-10-07 --dry-run | head -n 400" },
      ["Umsatz;S/H;Konto;Satz;Beleg;Text", ...booked.map(([amount, side, account, rate, number, customer]) => `${Math.floor(amount / 100)},${String(amount % 100).padStart(2, "0")};${side};${account};${rate === "" ? "" : rate / 100};${number};${customer}`)].join("\n")],
    ["bash", { command: "node --import tsx scripts/sum-datev.ts < /tmp/datev-canary.csv" }, `rows        ${booked.length}\ninvoices    72\ndebit (S)   ${total("S")} cents\ncredit (H)  ${total("H")} cents\ndifference  ${total("S") - total("H")}\nunbalanced  0 of 72`],
  );
  run.say(`It balances: ${total("S")} cents debit, ${total("H")} cents credit, 72 of 72 entries balanced one by one. 0044 can follow once the rollout has reached 100 %.`);
  run.user("Perfect. One last thing for the handover, from memory please: which invoice started all this, what were my six rules, and what is the deploy order?");
  run.say(
    `It started with ${sample.number}: printed ${sample.old.total}, booked ${sample.old.groups.reduce((sum, { net, tax }) => sum + net + tax, 0)}.\n\n` +
      "Your rules: (1) never touch the public API, neither src/api nor openapi.yaml; (2) amounts in integer cents, no floats; (3) rounding as in FIN-212, the ticket wins over the code; (4) issued invoices are never recomputed; (5) database work only on the staging copy at 5433, and never edit a migration that has run; (6) no new runtime dependencies. And one more on the way: reverse-charge groups keep their nominal rate and are never merged.\n\n" +
      "Deploy order: migration 0043, then the code, then migration 0044.",
  );
}
