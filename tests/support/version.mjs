/** The package's version, as its manifest says. */

import { readFileSync } from "node:fs";

export const { version: VERSION } = JSON.parse(readFileSync(new URL("../../pkg/package.json", import.meta.url), "utf8"));
