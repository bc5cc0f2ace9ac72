/** The main entry with those of functions on a history. */

export * from "context-compactor";
export * from "context-compactor/history";
export * from "context-compactor/tokens";
