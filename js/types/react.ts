/** Types of `context-compactor/react`. */

/** How full a trajectory's context is: in tokens, or in characters if the preset option `modelContextLimit`, which counts
 *  characters, is given. */
export interface ReactStats {
  /** Size of the context. */
  total_size: number;
  /** The most that fits. */
  model_limit: number;
  /** `total_size` of `model_limit`, 0..100. */
  usage_percent: number;
  /** Turns in the context. */
  turns_count: number;
  /** Size above which results are shortened. */
  compression_threshold: number;
  /** `total_size` is above `compression_threshold`. */
  needs_compression: boolean;
}

/** A context as a trajectory of thoughts, actions and results. Times are in ms since 1970. */
export interface Trajectory {
  /** Name, times and number of messages of the session. */
  metadata: { session: string; created_at: number; updated_at: number; messages: number };
  /** The thoughts, in order. */
  reasoning_trace: string[];
  /** The last answer without a tool call (empty if there is none), and the turns. */
  execution: { final_response: string; tool_calls: { thought: string; action: object; result: string }[] };
  /** Whether results are shortened, and how full the context is. */
  context_compression: { enabled: boolean; stats: ReactStats };
}
