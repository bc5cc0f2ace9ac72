import type { Fate } from "../run/types.js";
import { Icon } from "./icon.js";
import { FATE_HINT } from "./labels.js";

/** What became of a message: color, icon and word. */
export function FateBadge({ fate }: { fate: Fate }) {
  return (
    <span class={`fate fate-${fate}`} title={FATE_HINT[fate]}>
      <Icon name={fate} />
      {fate}
    </span>
  );
}
