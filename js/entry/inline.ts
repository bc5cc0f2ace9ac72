/** Entry `context-compactor/inline`: the engine is part of the code, for what has to be one file. */

import { bringFrom } from "../engine.js";
import { compiled } from "../module.js";
import * as compact from "../wasm/inline-compact.js";
import * as rest from "../wasm/inline-rest.js";
import * as shared from "../wasm/inline-shared.js";
import * as core from "../wasm/inline.js";

const code = { compact, core, rest, shared };
bringFrom((file) => compiled(Promise.resolve(code[file])));

export * from "../index.js";
