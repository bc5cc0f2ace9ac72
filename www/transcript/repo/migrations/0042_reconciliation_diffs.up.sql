CREATE TABLE reconciliation_diffs (
  invoice_number text PRIMARY KEY REFERENCES invoices (number),
  printed_cents  bigint NOT NULL,
  ledger_cents   bigint NOT NULL,
  found_on       date   NOT NULL,
  resolved_on    date
);
CREATE INDEX reconciliation_diffs_open ON reconciliation_diffs (found_on) WHERE resolved_on IS NULL;
