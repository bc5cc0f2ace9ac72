/** The sample of generated mutants that `generated.json` reports, and why some of them survive. */

/** The first of them, by a hash of the seed and of what names a mutant. */
export const COUNT = 200;
export const SEED = 1;

/**
 * Why a mutant of the sample survives: it changes nothing that anyone relies on, or no test sees it yet.
 * `{ file, function, operator, text, to, why }`: what names it, and the reason.
 */
export const reasons = [
  {
    file: "log/deletion.rs",
    function: "Held::delete",
    operator: "number",
    text: "0",
    to: "1",
    why: "Where all goes in one batch nothing is marked, and nothing is swept: the value is never taken.",
  },
  {
    file: "session/audit.rs",
    function: "Auditor::audit",
    operator: "condition",
    text: "found.is_err()",
    to: "the opposite",
    why: "Then an audit reads everything again after each success: slower; and no test audits on after a failure.",
  },
  {
    file: "recall/index.rs",
    function: "Reader::show",
    operator: "comparison",
    text: "bytes.len() <= PART",
    to: "<",
    why: "A page of exactly the limit is stored, or made again by each search: what is found is the same.",
  },
];
