/** The only door to the engine: everything on this page goes through its public API. */
export * from "context-compactor";
export * from "context-compactor/commands";
export * from "context-compactor/history";
export * from "context-compactor/tokens";
