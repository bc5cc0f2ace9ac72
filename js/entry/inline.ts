/** Entry for browsers, Node and every bundler: the module is part of the code. */

import { start } from "../engine.js";
import { bytes } from "../wasm/inline.js";

start(bytes);

export * from "../index.js";
