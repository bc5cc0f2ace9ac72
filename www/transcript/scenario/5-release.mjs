import { ciLog, coverage, openapi, psql, vitest } from "../lib/terminal.mjs";

/** CI, review questions that reach back to the start, and the pull request. */
export function release({ run, ws, random, invoices, sample }) {
  const extra = {
    "test/invoice/totals.test.ts": [`prints what the ledger books (${sample.number})`],
    "test/money/allocate.test.ts": ["gives the left-over cent to the largest remainder", "always adds up"],
    "test/invoice/legacy-totals.test.ts": ["reproduces 400 issued invoices to the cent", "is not used for new invoices"],
  };
  run.step(
    "Pushing the branch for CI.",
    ["bash", { command: "git push -q -u origin fix/rounding && gh run watch --exit-status; gh run view --log" }, ciLog(random, [
      ["Set up job", "Current runner version: '2.328.0'\nOperating System: Ubuntu 24.04.3 LTS\nPrepare workflow directory\nPrepare all required actions\nComplete job name: test (22.x)"],
      ["Run npm ci", "added 412 packages, and audited 413 packages in 9s\n96 packages are looking for funding\nfound 0 vulnerabilities"],
      ["Run npm run lint", "> @brightwater/invoicing@4.17.2 lint\n> eslint . --max-warnings 0\n\n/builds/invoicing/src/invoice/legacy-totals.ts\n  3:31  error  'TaxGroup' is defined as a type but imported without `type`  @typescript-eslint/consistent-type-imports\n\n✖ 1 problem (1 error, 0 warnings)\n  1 error and 0 warnings potentially fixable with the `--fix` option.\n\nError: Process completed with exit code 1."],
    ])],
  );
  run.step(
    "A lint rule about type imports, my editor did not have it. Fixing the import and running what CI runs, in its order, before I push again.",
    ["bash", { command: "npx eslint --fix src/invoice/legacy-totals.ts && npm run -s lint && npx tsc --noEmit && echo ok" }, "ok"],
    ["bash", { command: "npx vitest run --coverage 2>/dev/null | sed -n '/File/,$p'" }, coverage(random)],
    ["bash", { command: "git commit -q --amend --no-edit && git push -q --force-with-lease && gh run watch --exit-status > /tmp/ci.log; tail -n 120 /tmp/ci.log" }, ciLog(random, [
      ["Run npm ci", "added 412 packages, and audited 413 packages in 8s\nfound 0 vulnerabilities"],
      ["Run npm run lint", "> @brightwater/invoicing@4.17.2 lint\n> eslint . --max-warnings 0"],
      ["Run npm test", vitest(random, { extra })],
      ["Run npm run test:db", "connected to localhost:5432/invoicing_test (schema version 44)\n" + vitest(random, { only: "api" })],
      ["Post job", "Cleaning up orphan processes"],
    ])],
  );
  run.user("CI is green. Two review questions from the team:\n\n(a) Why BigInt? Is that not slow for the nightly job?\n(b) Why not simply use a decimal library?");
  run.step(
    "(b) first, it is short: your rule 6, no new runtime dependencies; and integers are exact already. For (a) let me measure instead of arguing.",
    ["bash", { command: "node --import tsx bench/totals.bench.ts" },
      `cpu: 8 × 3.1 GHz, node v22.20.0\n\nbenchmark                         time/iter      iters/s   p99\n${[["percentOf (Number, half-up)", 21], ["percentOf (BigInt, half-even)", 143], ["allocate, 2 groups", 811], ["allocate, 6 groups", 2_204], ["legacyTotals, 6 lines", 1_904], ["invoiceTotals, 6 lines", 3_377], ["invoiceTotals, 60 lines", 19_870]].map(([name, ns]) => `${name.padEnd(32)} ${String(ns).padStart(8)} ns ${Math.round(1e9 / ns).toLocaleString("en-US").padStart(12)} ${String(Math.round(ns * 1.4)).padStart(6)} ns`).join("\n")}`],
    ["bash", { command: "hyperfine --warmup 1 'npm run -s reconcile -- --day 2025-09-30 --db $STAGING_COPY'" }, "Benchmark 1: npm run -s reconcile -- --day 2025-09-30 --db $STAGING_COPY\n  Time (mean ± σ):     41.882 s ±  0.611 s    [User: 6.204 s, System: 0.913 s]\n  Range (min … max):   41.120 s … 42.905 s    10 runs\n\nbefore this branch:    41.530 s ±  0.704 s"],
  );
  run.say("(a) One invoice costs 3.4 µs instead of 1.9 µs. The nightly job computes about 37,000 invoices a night, so that is 0.06 s of 41.9 s: inside the noise (41.5 ± 0.7 s before). The product of an amount and a rate can pass 2^53 for large invoices, and BigInt makes that case boring. (b) No new runtime dependency, and a decimal type would still need the same largest-remainder step.");
  run.user("Good answers. Partner question now: one of them asks whether the API shows by which rule an invoice was rounded. Can we add a field?");
  run.step(
    "Before I answer, the contract itself (reading only):",
    ["read_file", { path: "openapi.yaml" }, openapi()],
  );
  run.say("No: that is your first ground rule. Nothing in src/api and nothing in openapi.yaml changes in this task, because partners validate strictly and a new field breaks them. `InvoiceResponse` is a strict object, and there is a test that `rounding_version` is not exposed. If a partner needs it, CONTRIBUTING.md names the way: an API proposal for the next version. I can draft one as a separate document if you like, but not in this branch.");
  run.user("Correct, that was a test of sorts. Next: reverse charge. Show me that those invoices still look the way the tax authority wants.");
  const reverse = invoices.filter(({ draft }) => draft.reverseCharge).slice(0, 12);
  run.step(
    "You said it early on: the nominal rate stays visible and the groups are never merged into 0 %. Checking both, in the PDF text and in the data:",
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT i.number, g.rate_bp, g.net_cents, g.tax_cents FROM invoices i JOIN invoice_tax_groups g USING (number) WHERE i.reverse_charge AND i.issued_on >= '2025-09-01' ORDER BY 1, 2 DESC LIMIT 24" },
      psql(["number", "rate_bp", "net_cents", "tax_cents"], reverse.flatMap((invoice) => invoice.fixed.groups.map((group) => [invoice.number, group.rate, group.net, group.tax])))],
    ["bash", { command: `node --import tsx scripts/render-one.ts ${reverse[0].number} --dry-run | pdftotext -layout - -` },
      `INVOICE ${reverse[0].number}\n\nSubtotal                                    € ${(reverse[0].fixed.subtotal / 100).toFixed(2)}\n${reverse[0].fixed.groups.map((group) => `VAT ${group.rate / 100} % (reverse charge) on € ${(group.net / 100).toFixed(2)}        € 0.00`).join("\n")}\nTotal due                                   € ${(reverse[0].fixed.total / 100).toFixed(2)}\n\nSteuerschuldnerschaft des Leistungsempfängers / reverse charge, Art. 196 Directive 2006/112/EC`],
    ["run_tests", { filter: "pdf" }, vitest(random, { only: "pdf" })],
  );
  run.say("Both hold: every reverse-charge invoice keeps its groups with their nominal rates (1900 and 700), tax 0, and the PDF prints \"(reverse charge)\" after each rate.");
  run.user("Great. Run 0044 on the staging copy, then one full night of reconciliation with the new code, and write the PR description. Mention the credit-note expectation, Finance wanted to see that.");
  const nights = Array.from({ length: 31 }, (_, i) => [`2025-${i < 30 ? "09" : "10"}-${String(i < 30 ? i + 1 : 1).padStart(2, "0")}`, random.int(33_100, 39_900), 0, `${(40 + random.next() * 3).toFixed(1)} s`]);
  run.step(
    "",
    ["bash", { command: "npm run -s migrate -- --to 0044 --db $STAGING_COPY --verbose" }, "connected to localhost:5433/invoicing (schema version 43)\n0044_rounding_version_default.up.sql\n  ALTER COLUMN … SET DEFAULT 2                     2.8 ms\n  VALIDATE CONSTRAINT                           3911.0 ms   (ShareUpdateExclusiveLock, 0 writers waited)\nschema version 44"],
    ["bash", { command: "for d in $(seq 1 31); do npm run -s reconcile -- --day $(date -d \"2025-08-31 +$d day\" +%F) --db $STAGING_COPY --quiet; done | column -t" }, psql(["day", "invoices", "differences", "took"], nights)],
    ["bash", { command: "git fetch -q && git log --oneline origin/main..HEAD && git diff --stat origin/main...HEAD -- src/api openapi.yaml package.json | tail -1 && echo '(no change in src/api, openapi.yaml, package.json)'" }, "4ac90d1 Remember by which rounding rule an invoice was issued\ne03d8a4 Send reminders on the day that the customer sees on the calendar\nb7f2c19 Print what the ledger books when a discount spans two tax rates\n(no change in src/api, openapi.yaml, package.json)"],
  );
  run.step(
    "A month of nights without a difference. Last look at everything that ships besides the three commits you have seen:",
    ["read_file", { path: "src/invoice/totals.ts" }, ws.show("src/invoice/totals.ts")],
    ["read_file", { path: "src/jobs/reconcile.ts" }, ws.show("src/jobs/reconcile.ts")],
    ["read_file", { path: "migrations/0044_rounding_version_default.up.sql" }, ws.show("migrations/0044_rounding_version_default.up.sql")],
  );
  run.say(
    `**Print what the ledger books**\n\nFixes the one-cent differences between PDF and ledger (first seen on ${sample.number}).\n\n` +
      "*Cause.* With a percentage discount over two tax rates, the discount was rounded once on the subtotal (printed) and again per tax group (booked). The two roundings need not agree.\n\n" +
      "*Fix.* The discount is rounded once and shared out by largest remainder; tax is half-even once per group (FIN-212, ADR 0007). Integer cents throughout.\n\n" +
      "*Issued invoices do not change.* `rounding_version` remembers the rule; version 1 re-renders as it was issued (40 of 40 sampled PDFs identical).\n\n" +
      "*Changed expectations (for Finance).* `credit/notes.test.ts`: half of 2,093 cents is credited as 1,046 (half-even), was 1,047 (FIN-88).\n\n" +
      "*Also.* Reminders now go out on the customer's calendar day; 1,124 reminders this year were a day early, all west of the server's zone. This was the flaky test.\n\n" +
      "*Unchanged.* src/api, openapi.yaml, package.json. Reverse-charge groups keep their nominal rates.\n\n" +
      "*Deploy order.* 0043, then the code, then 0044. `lock_timeout` is 500 ms; stay clear of the DATEV export (02:40 to 03:10 UTC).",
  );
}
