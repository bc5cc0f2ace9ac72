/** The script of axe, for a page: what it says is wrong with the page for people who see, hear or move differently. */

import { fileURLToPath } from "node:url";

export const axe = fileURLToPath(import.meta.resolve("axe-core/axe.min.js"));
