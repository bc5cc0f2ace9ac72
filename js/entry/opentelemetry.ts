/** Entry `context-compactor/opentelemetry`: compactions as spans and metrics. It brings no API: that is the app's. */

export { conversationAttributes, traced } from "../opentelemetry.js";
export type { MeterOptions, OpenTelemetry, TraceAttributes, TraceContext, TraceSpan } from "../types/opentelemetry.js";
