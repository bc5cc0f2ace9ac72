/** Types of WebAssembly for apps whose TypeScript lacks those of browsers, which fit these. */

/** A compiled module. */
export type WasmModule = object;
/** Bytes of one. */
export type WasmBytes = ArrayBuffer | ArrayBufferView<ArrayBuffer>;

/** A file of the engine: what is always needed, and the parts that are loaded when they are first needed. */
export type EngineFile = "core" | "compact" | "rest" | "shared";
