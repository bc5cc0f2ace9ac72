/** Entry `context-compactor/testing`: what a store of your own must pass. */

export { storeConformance, type ConformanceCase, type ConformanceOptions } from "../store/conformance.js";
