import { useEffect, useMemo, useState } from "preact/hooks";
import { BeforeAfter } from "./components/before-after.js";
import { Chart } from "./components/chart.js";
import { Chat } from "./components/chat.js";
import { Compactions } from "./components/compactions.js";
import { Cost } from "./components/cost.js";
import { EndpointDialog } from "./components/endpoint-dialog.js";
import { Header } from "./components/header.js";
import { ImportDialog } from "./components/import-dialog.js";
import { Intro } from "./components/intro.js";
import { Last } from "./components/last.js";
import { Meter } from "./components/meter.js";
import { Recall } from "./components/recall.js";
import { ReportDialog } from "./components/report-dialog.js";
import { Setup } from "./components/setup.js";
import { Tabs } from "./components/tabs.js";
import { Timeline } from "./components/timeline.js";
import { Transport } from "./components/transport.js";
import { Working } from "./components/working.js";
import type { RunController } from "./run/controller.js";
import { WINDOW_OF } from "./run/initial.js";
import { readHistory, windowFor, type History } from "./run/sources.js";
import { useStore } from "./run/store.js";
import type { Fate, RunState } from "./run/types.js";

type TabName = "timeline" | "compactions" | "recall" | "cost" | "chat";
const WIDE = "(min-width: 900px)";

export function App({ run }: { run: RunController }) {
  const state = useStore(run);
  const wide = useMedia(WIDE);
  const [chosen, setTab] = useState<TabName>("timeline");
  const tab = wide && chosen === "timeline" ? "compactions" : chosen;
  const [dialog, setDialog] = useState<"endpoint" | "report" | { dropped: string } | undefined>();
  const [compaction, setCompaction] = useState<number | undefined>();
  const [offload, setOffload] = useState<string | undefined>();

  const at = state.view ?? state.log.length;
  const ledger = useMemo(() => ledgerAt(state, at), [state.ledger, state.view, state.compactions, at]);
  const fates = useMemo(() => fatesOf(ledger, at), [ledger, at]);
  const sample = state.view === undefined ? state.samples.at(-1) : state.samples.findLast(({ x }) => x <= at);

  useEffect(() => {
    setCompaction(undefined);
    setOffload(undefined);
  }, [state.id]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== " " || target.closest("button, input, textarea, select, dialog, pre, [tabindex]"))
        return;
      event.preventDefault();
      if (run.state.playing) run.pause();
      else run.play();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [run]);

  const openCompaction = (number: number) => {
    setCompaction(number);
    setTab("compactions");
    requestAnimationFrame(() =>
      document.getElementById(`compaction-${number}`)?.scrollIntoView({ block: "nearest" }),
    );
  };
  const openOffload = (ref: string) => {
    setOffload(ref);
    setTab("recall");
    requestAnimationFrame(() => document.getElementById(ref)?.scrollIntoView({ block: "nearest" }));
  };
  const ask = () => document.getElementById("ask")?.focus();
  const load = (history: History) => {
    setDialog(undefined);
    void run.begin({ sourceName: "own", contextWindow: windowFor(history) }, history.messages);
  };
  /** A file without a fault plays at once. */
  const openFile = async (file: File) => {
    const dropped = await file.text();
    const history = await readHistory(dropped).catch(() => undefined);
    if (history && history.problems.length === 0) load(history);
    else setDialog({ dropped });
  };
  const isOver = useDrop((file) => void openFile(file));
  const compactionAt = state.compactions.findLast(({ x }) => x <= at);
  const seek = (x: number) => void run.seek(Math.max(0, x));

  const timeline = (
    <Timeline state={state} at={at} ledger={ledger} onCompaction={openCompaction} onOffload={openOffload} />
  );
  return (
    <>
      <Header
        modelLabel={run.endpoint?.model ?? "Model"}
        hasModel={run.endpoint !== undefined}
        onModel={() => setDialog("endpoint")}
        onStartOver={() => void run.startOver()}
      />
      <main>
        <div class="first">
          <Intro
            state={state}
            isOver={isOver}
            onFile={(file) => void openFile(file)}
            onPaste={() => setDialog({ dropped: "" })}
          />
          <BeforeAfter
            run={run}
            state={state}
            compaction={compactionAt}
            onOpen={openCompaction}
            onReport={() => setDialog("report")}
          />
        </div>
        {state.error && (
          <p class="error banner" role="alert">
            {state.error}{" "}
            <button
              type="button"
              class="link"
              onClick={() =>
                state.phase === "failed" ? void run.begin({ sourceName: "invoicing-run" }) : run.dismissError()
              }
            >
              {state.phase === "failed" ? "Begin a new session" : "Dismiss"}
            </button>
          </p>
        )}
        <section class="stage card" aria-label="Context window">
          <Setup
            state={state}
            onSource={(name) => void run.startOver({ sourceName: name, contextWindow: WINDOW_OF[name] })}
            onSetup={(change) => void run.startOver(change)}
          />
          <Meter state={state} sample={sample} />
          <Chart state={state} at={at} onSeek={seek} onOpen={openCompaction} />
          <Last compaction={compactionAt} onOpen={openCompaction} onRecall={ask} />
          <Transport
            state={state}
            at={at}
            fates={fates}
            onPlay={() => run.play()}
            onPause={() => run.pause()}
            onSeek={seek}
            onSpeed={(speed) => run.setSpeed(speed)}
          />
        </section>
        <Working busy={state.busy} onAbort={() => run.abort()} />
        <div class="columns">
          {wide && (
            <section class="card" aria-labelledby="timeline-title">
              <h2 id="timeline-title" class="panel-title">
                Timeline <span>every message, and where it is now</span>
              </h2>
              {timeline}
            </section>
          )}
          <section class="card side" aria-label="Details">
            <Tabs<TabName>
              label="Details"
              selected={tab}
              onSelect={setTab}
              tabs={[
                ...(wide ? [] : [{ name: "timeline" as const, title: "Timeline", content: timeline }]),
                {
                  name: "compactions",
                  title: "Compactions",
                  badge: state.compactions.length,
                  content: (
                    <Compactions
                      compactions={state.compactions}
                      offloads={state.offloads}
                      selected={compaction}
                      onSelect={setCompaction}
                      onOffload={openOffload}
                    />
                  ),
                },
                {
                  name: "recall",
                  title: "Recall",
                  badge: state.offloads.length,
                  content: <Recall run={run} state={state} selected={offload} onSelect={setOffload} onAsk={ask} />,
                },
                {
                  name: "cost",
                  title: "Cost",
                  content: <Cost state={state} />,
                },
                {
                  name: "chat",
                  title: "Chat",
                  content: (
                    <Chat
                      state={state}
                      hasModel={run.endpoint !== undefined}
                      onSend={(text) => void run.send(text)}
                      onModel={() => setDialog("endpoint")}
                    />
                  ),
                },
              ]}
            />
          </section>
        </div>
      </main>
      <footer class="bottom">
        <p>
          Session <code>{state.id}</code> is kept in this browser's IndexedDB: reload, and it is still here.
          “Start over” deletes it.
        </p>
      </footer>
      {typeof dialog === "object" && (
        <ImportDialog text={dialog.dropped} onClose={() => setDialog(undefined)} onLoad={load} />
      )}
      {dialog === "report" && <ReportDialog run={run} onClose={() => setDialog(undefined)} />}
      {dialog === "endpoint" && (
        <EndpointDialog
          endpoint={run.endpoint}
          onClose={() => setDialog(undefined)}
          onSave={(endpoint) => {
            setDialog(undefined);
            void run.setEndpoint(endpoint);
          }}
        />
      )}
    </>
  );
}

/** A file can be dropped anywhere on the page; true while one is held over it. */
function useDrop(onFile: (file: File) => void): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const onOver = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    // Into another element, or out of the page.
    const onLeave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const onDrop = (event: DragEvent) => {
      const [file] = event.dataTransfer?.files ?? [];
      setOver(false);
      if (!file) return;
      event.preventDefault();
      onFile(file);
    };
    addEventListener("dragover", onOver);
    addEventListener("dragleave", onLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onOver);
      removeEventListener("dragleave", onLeave);
      removeEventListener("drop", onDrop);
    };
  });
  return isOver;
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const follow = () => setMatches(list.matches);
    list.addEventListener("change", follow);
    return () => list.removeEventListener("change", follow);
  }, [query]);
  return matches;
}

/** The ledger as it was at a step: that of the last compaction before it. Messages after that were verbatim. */
function ledgerAt({ ledger, compactions, view }: RunState, at: number) {
  if (view === undefined) return ledger;
  return compactions.findLast(({ x }) => x < at)?.ledger ?? [];
}

function fatesOf(ledger: RunState["ledger"], length: number): Fate[] {
  const fates = Array.from({ length }, (): Fate => "verbatim");
  for (const { index, fate } of ledger) if (index < length) fates[index] = fate;
  return fates;
}
