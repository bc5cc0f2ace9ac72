import type { Fate } from "../run/types.js";
import { Icon } from "./icon.js";
import { FATE_HINT } from "./labels.js";

/** What became of a message: colour, icon and word. */
export function FateBadge({ fate, quoted }: { fate: Fate; quoted?: boolean | undefined }) {
  const word = quoted ? "quoted" : fate;
  return (
    <span class={`fate fate-${fate}`} title={quoted ? "quoted in full inside the summary" : FATE_HINT[fate]}>
      <Icon name={fate} />
      {word}
    </span>
  );
}
