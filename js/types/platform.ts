/** Types of WebAssembly for apps whose TypeScript lacks those of browsers, which fit these. */

/** A compiled module. */
export type WasmModule = object;
/** Bytes of one. */
export type WasmBytes = ArrayBuffer | ArrayBufferView<ArrayBuffer>;
