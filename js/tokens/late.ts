/** What brings a family's table to the engine: a file of its own, so that what counts tokens without the engine is one file in Node. */

export { bring, weightsOf } from "./tables.js";
