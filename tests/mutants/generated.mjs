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
    file: "log/stored.rs",
    function: "place_among",
    operator: "number",
    text: "2",
    to: "3",
    why: "Then the search goes by thirds: it finds the same row with a few reads more.",
  },
  {
    file: "session/erase.rs",
    function: "Held::erasure",
    operator: "number",
    text: "0",
    to: "1",
    why: "The count of messages before the first row is used for gaps alone, and this walk tells of none.",
  },
];
