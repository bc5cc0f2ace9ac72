import { useEffect, useMemo, useState } from "preact/hooks";
import { PRICES } from "../../../bench/front/bill.mjs";
import { pricesLine } from "../logic/cost.js";
import { describe } from "../run/describe.js";
import { measureAll, recallsOf } from "../run/evaluation.js";
import { curvesOf, replayAll, type Question } from "../run/replays.js";
import type { RunState } from "../run/types.js";
import { Curves } from "./curves.js";
import { Icon } from "./icon.js";
import { Retained } from "./retained.js";

/** The transcript that is playing, replayed by the engine itself: what it costs and loses; and what compactors retain of it. */
export function Cost({ state }: { state: RunState }) {
  const { source, sourceName, contextWindow, preset } = state;
  const question = useMemo(
    () => ({ source, sourceName, contextWindow, preset }),
    [source, sourceName, contextWindow, preset],
  );
  const { error, progress, isStopped, stop, again } = useWork(question);
  const curves = curvesOf(question);
  const recalls = recallsOf(question);
  const isIdle = error !== undefined || isStopped;
  return (
    <div class="cost">
      {isIdle && (
        <p class="error banner" role="alert">
          {error ?? "Stopped."}{" "}
          <button type="button" class="link" onClick={again}>
            {isStopped ? "Go on" : "Try again"}
          </button>
        </p>
      )}
      <section aria-labelledby="cost-title" aria-busy={curves === undefined && !isIdle}>
        <h3 id="cost-title">Cost and needs lost, call by call</h3>
        <p>
          Each line is a session of the engine with the options of the run above, driven over the whole transcript in
          memory. The built-in summarizer writes its summaries.
        </p>
        <Curves curves={curves} chosen={state.economy ? "economy" : "preset"} contextWindow={contextWindow} />
        <p>
          {pricesLine(PRICES)}. A call has <i>lost a need</i> if it copies three runs of eight words that had left, and
          nothing in its prompt says them any more. A prompt in red does not fit into the window. The transcript is a
          recording: an agent that missed something would have gone on differently.
        </p>
      </section>
      <Retained reports={recalls} isIdle={isIdle} />
      <div class="running">
        {progress && (
          <p>
            <span role="status">{progress.label}</span>
            <progress max={Math.max(1, progress.total)} value={progress.done} aria-label="Progress" />
            <button type="button" class="button" onClick={stop}>
              <Icon name="stop" /> Stop
            </button>
          </p>
        )}
      </div>
    </div>
  );
}

interface Progress {
  label: string;
  done: number;
  total: number;
}

interface Work {
  error: string | undefined;
  /** Only of what takes over a second. */
  progress: Progress | undefined;
  isStopped: boolean;
  stop(): void;
  again(): void;
}

/** Works while the panel is open, and for another transcript, window or preset anew. */
function useWork(question: Question): Work {
  const [, setParts] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<string | undefined>();
  const [progress, setProgress] = useState<Progress | undefined>();
  const [abort, setAbort] = useState<AbortController | undefined>();
  const [isStopped, setStopped] = useState(false);
  useEffect(() => {
    if (question.source.length === 0) return;
    const controller = new AbortController();
    const { signal } = controller;
    const began = performance.now();
    const watch = {
      signal,
      onProgress: (now: Progress) => {
        if (!signal.aborted && performance.now() - began > 1_000) setProgress(now);
      },
      onPart: () => signal.aborted || setParts((parts) => parts + 1),
    };
    setError(undefined);
    setStopped(false);
    setAbort(controller);
    replayAll(question, watch)
      .then(() => measureAll(question, watch))
      .catch((reason: unknown) => signal.aborted || setError(describe(reason)))
      .finally(() => signal.aborted || setProgress(undefined));
    return () => {
      controller.abort();
      setProgress(undefined);
    };
  }, [question, attempt]);
  const stop = () => {
    abort?.abort();
    setProgress(undefined);
    setStopped(true);
  };
  return { error, progress, isStopped, stop, again: () => setAttempt(attempt + 1) };
}
