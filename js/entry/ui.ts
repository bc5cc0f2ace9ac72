/** Entry `context-compactor-ui`: parts of a page that need no framework, and their words. */

export { mountContextMap, type ContextMap, type MapUsage } from "../ui/map.js";
export { mountContextPanel, type ContextPanel, type ShownSession } from "../ui/panel.js";
export { FATES, FATE_HINTS, categoryColor, stepsOf, type Fate } from "../ui/words.js";
