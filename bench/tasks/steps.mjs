/**
 * The language of the steps: `door 9 = {door 3} plus {mark of the heron in room 7}`. Texts state a value as
 * `LABEL: VALUE`, `LABEL = VALUE` or `LABEL is VALUE`; what changes is stated as `LABEL after entry N: VALUE`.
 */

/** What a step asks for: names, each with the labels and words that make its value. */
export function parse(instruction) {
  return instruction.split("; ").map((part) => {
    const [name, expression] = part.split(" = ");
    return { name, terms: expression.split(/ (?=(?:plus|minus|then) )/).map(term) };
  });
}

function term(text) {
  const [, operator = "plus", operand] = /^(?:(plus|minus|then) )?(.+)$/.exec(text);
  const label = /^\{(.+)\}$/.exec(operand)?.[1];
  return label === undefined ? { operator, literal: operand } : { operator, label };
}

/** The value of `terms`, a text, with `valueOf(label)`. */
export function evaluate(terms, valueOf) {
  return terms.map(({ operator, label, literal }) => [operator, literal ?? valueOf(label)]).reduce(combine, "");
}

function combine(sum, [operator, value]) {
  if (sum === "") return String(value);
  if (operator === "then") return `${sum}-${value}`;
  return String(operator === "plus" ? Number(sum) + Number(value) : Number(sum) - Number(value));
}

/** What the texts state for a label: of the latest entry where they name one, else what is said last; and none that is cut. */
export function read(texts, label) {
  const name = label.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const stated = new RegExp(`(?<![\\w/.-])${name}(?: after entry (\\d+))?"?(?::| =| is) ?"?([\\w-]+)(?![\\w-]|…)`, "g");
  let newest;
  for (const { text, old } of texts.filter(({ text }) => text.includes(label))) {
    for (const [, number, value] of text.matchAll(stated)) {
      const entry = number && Number(number);
      if (entry < newest?.entry) continue;
      // What is said here and told again there is no news of long ago.
      const isAgain = newest && newest.entry === entry && newest.value === value;
      newest = { value, entry, old: isAgain ? newest.old && old : old };
    }
  }
  return newest;
}
