/** The package's types, as an app sees them. Compiled, never run. */

import * as inlined from "context-compactor";
import { fileStore } from "context-compactor/node";
import * as slim from "context-compactor/slim";

export const version: string = inlined.version();
export const started: Promise<void> = slim.initialize(new URL("https://example.org/core.wasm"));
export const error: Error = new inlined.CompactionError("closed", "…");

export const store: inlined.Store = fileStore("sessions", { durability: "relaxed", rewriteBytes: 1 });

// The two entries differ in `initialize` alone.
type Missing = Exclude<keyof typeof inlined, keyof typeof slim>;
type Added = Exclude<keyof typeof slim, keyof typeof inlined>;
export const differences: [Missing extends never ? true : false, Added] = [true, "initialize"];
