import { useEffect, useMemo, useState } from "preact/hooks";
import type { EvaluationProgress, RecallReport } from "../evaluator.js";
import {
  BUDGETS,
  costLines,
  costRows,
  dollars,
  measured,
  policiesFor,
  pricesLine,
  recallRows,
  type CostRow,
} from "../logic/cost.js";
import { describe } from "../run/describe.js";
import { evaluate, known, sheetOf, type Evaluation, type Question } from "../run/evaluation.js";
import type { RunState } from "../run/types.js";
import { CostChart } from "./cost-chart.js";
import { count, percent, plural } from "./labels.js";

interface Props {
  state: RunState;
  /** Name of the price sheet; the first when it is not chosen. */
  sheet: string | undefined;
  onSheet(name: string): void;
}

const STAGES: Record<EvaluationProgress["stage"], string> = {
  replay: "Replaying the policies",
  optimum: "Searching the optimum",
  cut: "Cutting the transcript",
  measure: "Measuring what is retained",
};

/** The transcript that is playing under several policies: what they cost; and what compactors retain of it. */
export function Cost({ state: { source, sourceName, contextWindow }, sheet, onSheet }: Props) {
  const question = { source, sourceName, contextWindow, sheet };
  const { evaluation, error, progress, again } = useEvaluation(question);
  const { sheets, costs, recalls } = evaluation;
  const policies = useMemo(() => policiesFor(contextWindow), [contextWindow]);
  const lines = useMemo(() => costLines(policies, costs ?? []), [policies, costs]);
  const prices = sheetOf(question);
  return (
    <div class="cost">
      {error !== undefined && (
        <p class="error banner" role="alert">
          {error}{" "}
          <button type="button" class="link" onClick={again}>
            Try again
          </button>
        </p>
      )}
      <section aria-labelledby="cost-title" aria-busy={costs === undefined && error === undefined}>
        <header>
          <h3 id="cost-title">Cost by policy</h3>
          <label>
            <span>Prices</span>
            <select
              value={prices?.name ?? ""}
              disabled={sheets.length === 0}
              onChange={(event) => onSheet(event.currentTarget.value)}
            >
              {sheets.length === 0 && <option value="">…</option>}
              {sheets.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </header>
        <p class="rates">{prices ? pricesLine(prices.prices) : "\u00a0"}</p>
        <CostChart lines={lines} optimum={costs?.[0]?.optimum} />
        <CostTable rows={costRows(policies, costs, contextWindow)} />
        <p>
          The threshold is at 85 % of the window and a summary leaves 10 %; the sliding window drops the oldest
          messages at 85 %, before every call; clearing leaves the newest 3 tool results. <i>Fetched again</i> is
          what the agent needed later and the context had no more; its price is part of the cost. The{" "}
          <i>optimum</i> is the least that summaries could have cost, in a window without end, had one known how
          the run goes on. Prompts are counted as the messages alone; those in red do not fit into the window (the
          exchange under way always stays).
        </p>
      </section>
      <section aria-labelledby="retained-title" aria-busy={recalls === undefined && error === undefined}>
        <header>
          <h3 id="retained-title">What a compaction retains</h3>
        </header>
        <p>
          The transcript is cut, what stands before is compacted, and what the agent then wrote from memory is
          looked for: <i>named</i> (T1), <i>in context</i> (T2: beside words that surrounded it), and{" "}
          <i>recoverable</i> (named, or found through a path or a search). <code>keep-layer</code> and{" "}
          <code>extractive</code> are this package's.
        </p>
        <p>
          Presence is necessary, not sufficient, the metric is lexical, and the conversation is taken as it was.
          The same functions measure a policy or a compactor of your own:{" "}
          <code>{'import { replay, recall } from "context-compactor-evaluator"'}</code>.
        </p>
        <Retained reports={recalls} />
      </section>
      <Running progress={progress} />
    </div>
  );
}

function CostTable({ rows }: { rows: CostRow[] }) {
  const amount = dollars(Math.max(0, ...rows.map(({ figures }) => figures?.cost ?? 0)));
  const isRead = rows.some(({ figures }) => figures !== undefined);
  const cell = (value: number | undefined, write: (value: number) => string) =>
    value === undefined ? (isRead ? "–" : "…") : write(value);
  return (
    <div class="scroll" role="region" aria-label="Costs by policy" tabIndex={0}>
      <table class="costs">
        <caption class="hidden">Costs of the run by policy</caption>
        <thead>
          <tr>
            <th scope="col">Policy</th>
            <th scope="col">Cost, USD</th>
            <th scope="col">Over the optimum</th>
            <th scope="col">Compac&shy;tions</th>
            <th scope="col">Fetched again</th>
            <th scope="col">Largest prompt</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, name, figures }) => (
            <tr key={id} class={`policy-${id}`}>
              <th scope="row">{id === "balanced" ? <code>{name}</code> : name}</th>
              <td>{cell(figures?.cost, amount)}</td>
              <td>{cell(figures?.ratio, (ratio) => `${ratio.toFixed(2)}×`)}</td>
              <td>{cell(figures?.compactions, count)}</td>
              <td>{cell(figures?.refetches, count)}</td>
              <td class={figures?.isOver ? "over" : ""} title={figures?.isOver ? OVER : undefined}>
                {cell(figures?.largest, count)}
                {figures?.isOver && <span class="hidden">, {OVER}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const OVER = "does not fit into the window";

function Retained({ reports }: { reports: RecallReport[] | undefined }) {
  const { cuts, needs } = measured(reports ?? []);
  if (reports && cuts === 0) {
    return (
      <p class="none">
        This transcript gives no cut: it is too short, or what comes later takes up nothing that was said before.
      </p>
    );
  }
  return (
    <div class="scroll" role="region" aria-label="Shares retained by compactor" tabIndex={0}>
      <table class="retained">
        <caption>
          {reports ? `Means over ${plural(cuts, "cut")}; names written from memory after them: ${count(needs)}.` : "…"}
        </caption>
        <thead>
          <tr>
            <td rowSpan={2} />
            {BUDGETS.map((budget) => (
              <th key={budget} scope="colgroup" colSpan={3}>
                {percent(budget)} of the history
              </th>
            ))}
          </tr>
          <tr>
            {BUDGETS.flatMap((budget) =>
              ["named", "in context", "recov\u00aderable"].map((title) => (
                <th key={`${budget} ${title}`} scope="col" class={title === "named" ? "group" : ""}>
                  {title}
                </th>
              )),
            )}
          </tr>
        </thead>
        <tbody>
          {recallRows(reports).map(({ name, shares }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {BUDGETS.flatMap((budget, i) =>
                (["mention", "context", "recoverable"] as const).map((metric) => (
                  <td key={`${budget} ${metric}`} class={metric === "mention" ? "group" : ""}>
                    {shares?.[i] ? percent(shares[i][metric]) : "…"}
                  </td>
                )),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How far it is; lies over the panel, so that nothing moves. */
function Running({ progress }: { progress: EvaluationProgress | undefined }) {
  return (
    <div class="running">
      {progress && (
        <p>
          <span role="status">{STAGES[progress.stage]}</span>
          <progress max={Math.max(1, progress.total)} value={progress.done} aria-label="Progress" />
        </p>
      )}
    </div>
  );
}

interface Evaluating {
  evaluation: Evaluation;
  error: string | undefined;
  /** Only of what takes over a second. */
  progress: EvaluationProgress | undefined;
  again(): void;
}

/** Asks while the panel is open, and for another transcript, window or prices anew. */
function useEvaluation(question: Question): Evaluating {
  const { source, sourceName, contextWindow, sheet } = question;
  const [, setParts] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<string | undefined>();
  const [progress, setProgress] = useState<EvaluationProgress | undefined>();
  useEffect(() => {
    if (source.length === 0) return;
    const abort = new AbortController();
    const { signal } = abort;
    const began = performance.now();
    const watch = {
      signal,
      onProgress: (now: EvaluationProgress) => {
        if (!signal.aborted && performance.now() - began > 1_000) setProgress(now);
      },
      onPart: () => signal.aborted || setParts((parts) => parts + 1),
    };
    setError(undefined);
    evaluate(question, watch)
      .catch((reason: unknown) => signal.aborted || setError(describe(reason)))
      .finally(() => signal.aborted || setProgress(undefined));
    return () => {
      abort.abort();
      setProgress(undefined);
    };
  }, [source, sourceName, contextWindow, sheet, attempt]);
  return { evaluation: known(question), error, progress, again: () => setAttempt(attempt + 1) };
}
