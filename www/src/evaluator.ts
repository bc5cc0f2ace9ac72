/** The door to the evaluator, a module of its own: import it when it is wanted, never with the page. */
export * from "context-compactor-evaluator";
