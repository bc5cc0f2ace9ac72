/** What is named of WebAssembly where an app's TypeScript has not the browser's types, which fit these. */

/** A compiled module. */
export type WasmModule = object;
/** Bytes of one. */
export type WasmBytes = ArrayBuffer | ArrayBufferView<ArrayBuffer>;
