/** Types of `context-compactor/react`. */

/** How full the context is: in tokens of the window, or in characters where `react.modelContextLimit` is given, which is
 *  in them. The names are the document's (`S2.9`). */
export interface ReactStats {
  total_size: number;
  model_limit: number;
  usage_percent: number;
  turns_count: number;
  compression_threshold: number;
  needs_compression: boolean;
}

/** A context as a trajectory (`S2.9`). */
export interface Trajectory {
  metadata: { session: string; created_at: number; updated_at: number; messages: number };
  reasoning_trace: string[];
  execution: { final_response: string; tool_calls: { thought: string; action: object; result: string }[] };
  context_compression: { enabled: boolean; stats: ReactStats };
}
