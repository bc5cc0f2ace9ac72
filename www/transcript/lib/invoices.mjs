/** The arithmetic of the story, so that its figures are true: the old totals, the new ones, and the data. */

const halfUp = (amount, rate) => Math.round((amount * rate) / 10_000);

function halfEven(amount, rate) {
  const product = Math.abs(amount) * rate;
  const whole = Math.floor(product / 10_000);
  const rest = product % 10_000;
  const up = rest > 5_000 || (rest === 5_000 && whole % 2 === 1);
  return Math.sign(amount) * (whole + (up ? 1 : 0));
}

const netOf = ({ quantity, unitPrice }) => halfEven(quantity * unitPrice, 10);

function groupsOf(lines) {
  const groups = new Map();
  for (const line of lines) groups.set(line.taxRate, (groups.get(line.taxRate) ?? 0) + netOf(line));
  return [...groups].map(([rate, gross]) => ({ rate, gross }));
}

function oldTotals({ lines, discountRate, reverseCharge }) {
  const groups = groupsOf(lines).map(({ rate, gross }) => {
    const discount = halfUp(gross, discountRate);
    return { rate, net: gross - discount, discount, tax: reverseCharge ? 0 : halfUp(gross - discount, rate) };
  });
  const subtotal = lines.reduce((sum, line) => sum + netOf(line), 0);
  const tax = groups.reduce((sum, group) => sum + group.tax, 0);
  const discount = halfUp(subtotal, discountRate);
  return { subtotal, discount, groups, tax, total: subtotal - discount + tax };
}

export function newTotals({ lines, discountRate, reverseCharge }) {
  const parts = groupsOf(lines);
  const subtotal = parts.reduce((sum, part) => sum + part.gross, 0);
  const discount = halfEven(subtotal, discountRate);
  const shares = parts.map((part, index) => {
    const product = discount * part.gross;
    return { index, share: Math.floor(product / subtotal), rest: product % subtotal, rate: part.rate };
  });
  let left = discount - shares.reduce((sum, { share }) => sum + share, 0);
  for (const share of [...shares].sort((a, b) => b.rest - a.rest || b.rate - a.rate || a.index - b.index)) {
    if (left-- <= 0) break;
    share.share += 1;
  }
  const groups = parts.map(({ rate, gross }, i) => {
    const net = gross - shares[i].share;
    return { rate, net, discount: shares[i].share, tax: reverseCharge ? 0 : halfEven(net, rate) };
  });
  const tax = groups.reduce((sum, group) => sum + group.tax, 0);
  return { subtotal, discount, groups, tax, total: subtotal - discount + tax };
}

export const ledgerTotal = ({ groups }) => groups.reduce((sum, { net, tax }) => sum + net + tax, 0);

const CATALOGUE = [
  ["SCN-2100", "Intraoral scanner, annual licence", 189_900, 1900],
  ["TIP-0050", "Scanner tips, box of 50", 4_995, 1900],
  ["BK-4410", "Handbook of digital impressions", 3_850, 700],
  ["TRN-0001", "On-site training, per hour", 11_250, 1900],
  ["SUP-0012", "Support plan, per month", 7_999, 1900],
  ["CAL-0300", "Calibration plate", 2_345, 1900],
  ["JRN-0077", "Journal subscription, per issue", 1_290, 700],
  ["WAX-0009", "Model wax, per kilogram", 3_333, 1900],
  ["SHP-0002", "Express shipping", 1_475, 1900],
  ["EBK-0118", "E-book: tax-free device loans", 1_999, 700],
];
const CUSTOMERS = [
  "Northgate Dental",
  "Lumen Orthodontics",
  "Praxis am Kanal",
  "Studio Kaakzorg",
  "Harbour Street Clinic",
  "Dental Lab Weststad",
  "Greenhill Surgery",
  "Zahnwerk Mitte",
  "Three Rivers Practice",
  "Oosterpoort Tandartsen",
];

/** Invoices of one month. About one in twelve has totals that differ between paper and ledger. */
export function createInvoices(random, count) {
  return Array.from({ length: count }, (_, i) => {
    const lines = Array.from({ length: random.int(2, 6) }, () => {
      const [sku, description, unitPrice, taxRate] = random.pick(CATALOGUE);
      const quantity =
        sku.startsWith("TRN") || sku.startsWith("WAX") ? random.int(1, 12) * 250 : random.int(1, 9) * 1000;
      return { sku, description, quantity, unitPrice, taxRate };
    });
    const draft = {
      lines,
      discountRate: random.pick([0, 0, 250, 500, 750, 1250, 1750]),
      reverseCharge: random.int(1, 9) === 1,
    };
    return {
      id: 884_211 + i * 3,
      number: `INV-2025-${String(4_380 + i).padStart(6, "0")}`,
      customer: random.pick(CUSTOMERS),
      issuedOn: `2025-09-${String(1 + Math.floor((i * 30) / count)).padStart(2, "0")}`,
      currency: "EUR",
      draft,
      old: oldTotals(draft),
      fixed: newTotals(draft),
    };
  });
}
