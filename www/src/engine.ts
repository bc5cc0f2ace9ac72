/** The only door to the library: everything on this page goes through its public API. */
export * from "context-compactor";
