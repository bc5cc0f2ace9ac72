import type { RecallReport } from "../evaluator.js";
import { BUDGETS, measured, recallRows } from "../logic/cost.js";
import { count, percent, plural } from "./labels.js";

interface Props {
  reports: RecallReport[] | undefined;
  /** Nothing is being measured. */
  isIdle: boolean;
}

/** What compactors retain of a transcript at equal sizes. */
export function Retained({ reports, isIdle }: Props) {
  return (
    <section aria-labelledby="retained-title" aria-busy={reports === undefined && !isIdle}>
      <h3 id="retained-title">What a compaction retains</h3>
      <p>
        The transcript is cut, what stands before is compacted, and what the agent then wrote from memory is
        looked for: <i>named</i> (T1), <i>in context</i> (T2: beside words that surrounded it), and{" "}
        <i>recoverable</i> (named, or found through a path or a search). <code>keep-layer</code> and{" "}
        <code>extractive</code> are this package's.
      </p>
      <p>
        Presence is necessary, not sufficient, the metric is lexical, and the conversation is taken as it was.
        The same functions measure a compactor of your own:{" "}
        <code>{'import { recall } from "context-compactor-evaluator"'}</code>.
      </p>
      <Shares reports={reports} />
    </section>
  );
}

function Shares({ reports }: { reports: RecallReport[] | undefined }) {
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
