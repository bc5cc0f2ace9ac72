/** The part of `@opentelemetry/api` 1 that is used, by its shapes. */

/** Attributes of a span or a measurement. */
export type TraceAttributes = Record<string, string | number | boolean | string[]>;

/** A context of OpenTelemetry. */
export interface TraceContext {
  /** Returns a value of it. */
  getValue(key: symbol): unknown;
}

/** A span of OpenTelemetry. */
export interface TraceSpan {
  /** Adds attributes. */
  setAttributes(attributes: TraceAttributes): unknown;
  /** Sets the status: `code` 2 is an error. */
  setStatus(status: { code: number }): unknown;
  /** Ends it now. */
  end(): void;
}

/** A histogram or a counter: its name, and what it measures. */
export interface MeterOptions {
  /** What it measures, for people. */
  description?: string;
  /** The unit, by UCUM. */
  unit?: string;
  /** Bounds of the buckets of a histogram. */
  advice?: { explicitBucketBoundaries?: number[] };
}

/** The module `@opentelemetry/api` 1, as `import * as otel` of it has it. */
export interface OpenTelemetry {
  /** Makes spans. */
  trace: {
    getTracer(name: string, version?: string): { startSpan(name: string, options?: { startTime?: number }): TraceSpan };
    setSpan(context: TraceContext, span: TraceSpan): TraceContext;
  };
  /** Knows the span that is active. */
  context: {
    active(): TraceContext;
    with<T>(context: TraceContext, call: () => T): T;
  };
  /** Makes metrics. Without it nothing is measured. */
  metrics?: {
    getMeter(
      name: string,
      version?: string,
    ): {
      createHistogram(name: string, options?: MeterOptions): { record(value: number, attributes?: TraceAttributes): void };
      createCounter(name: string, options?: MeterOptions): { add(value: number, attributes?: TraceAttributes): void };
    };
  };
}
