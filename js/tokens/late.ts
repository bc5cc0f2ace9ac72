/** The tables for the engine, by a file of its own: imported late and at once, they would cost `/tokens` a file more in Node. */

export { bring, weightsOf } from "./tables.js";
