import { useEffect, useState } from "preact/hooks";
import { reportOf } from "../logic/report.js";
import type { RunController } from "../run/controller.js";
import { describe } from "../run/describe.js";
import { Dialog } from "./dialog.js";

/** What can be shown to others of a run: its numbers. */
export function ReportDialog({ run, onClose }: { run: RunController; onClose(): void }) {
  const [text, setText] = useState<string | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    run.prove().then(
      (proof) => setText(reportOf(run.state, proof)),
      (reason: unknown) => setError(describe(reason)),
    );
  }, [run]);
  const copy = async () => {
    await navigator.clipboard.writeText(text ?? "");
    setCopied(true);
  };
  return (
    <Dialog title="A report to share" onClose={onClose}>
      <p>Numbers only: no text of the conversation, no name and no id is in it.</p>
      {error ? (
        <p class="error" role="alert">
          {error}
        </p>
      ) : (
        <pre class="report" tabIndex={0} aria-label="Report" aria-busy={text === undefined}>
          {text ?? "Reading everything back…"}
        </pre>
      )}
      <footer>
        <span role="status">{isCopied && "Copied"}</span>
        <a
          class="button"
          download="context-compactor-report.md"
          href={`data:text/markdown;charset=utf-8,${encodeURIComponent(text ?? "")}`}
        >
          Save
        </a>
        <button
          type="button"
          class="button primary"
          disabled={text === undefined}
          onClick={() => void copy().catch((reason: unknown) => setError(describe(reason)))}
        >
          Copy
        </button>
      </footer>
    </Dialog>
  );
}
