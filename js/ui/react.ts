/** Parts for React, in calls that Preact has too. */

import type { CompactionResult, ContextUsage, Prepared, Session } from "context-compactor";
import { createElement, useEffect, useState, type ReactElement } from "react";
import type { ShownSession } from "./panel.js";
import { textsAt } from "./texts.js";
import { FATE_HINTS, FATE_PATHS, count, plural, stepsOf, type Fate } from "./words.js";

/** How full the context of `session` is, as `session.context.usage()`; the component renders again with every change.
 *  `undefined` without a session. */
export function useContextUsage(session: Pick<ShownSession, "on"> & { context: Pick<Session["context"], "usage"> } | undefined): ContextUsage | undefined {
  const [usage, setUsage] = useState(() => session?.context.usage());
  useEffect(() => {
    setUsage(session?.context.usage());
    return session?.on("usage", setUsage);
  }, [session]);
  return usage;
}

/** A compaction, as `session.compact()` and `session.prepare()` return it, the event `compact` or the AI SDK's `data-compaction`
 *  part has it, or in numbers of your own. */
export type ShownCompaction =
  | Pick<CompactionResult, "previousTokens" | "currentTokens" | "appliedEdits" | "summary">
  | Pick<Prepared, "edits" | "usage" | "result">
  | { previousTokens: number; currentTokens: number; edits?: readonly { kind: string; indices?: readonly number[] }[]; summary?: string }
  | { edits: readonly string[]; freedTokens: number; usedTokens: number; summary?: string };

/** Properties of `CompactionDivider`. */
export interface CompactionDividerProps {
  /** The compaction. */
  compaction: ShownCompaction;
  /** The session: its archive has the texts of what left, and `snapshots.undo()` undoes the compaction. Without one there is
   *  only the summary to show. */
  session?: { archive: Pick<Session<any, any>["archive"], "history">; snapshots: Pick<Session["snapshots"], "undo"> };
  /** It is the session's last compaction: only that can be undone. Default: false. */
  isLast?: boolean;
  /** Called after it was undone. */
  onUndo?: () => void;
  /** Called in place of showing what left, for an app that has a view for it. */
  onShow?: () => void;
  /** Added to the class of its element. */
  className?: string;
}

/** Shows in a chat where the model's view became shorter: tokens before and after, what left, and a button that undoes it. The
 *  conversation above it is as it was. Its look is in `context-compactor-ui/styles.css`. */
export function CompactionDivider({ compaction, session, isLast = false, onUndo, onShow, className = "" }: CompactionDividerProps): ReactElement {
  const { before, after, edits, summary } = read(compaction);
  const indices = [...new Set(edits.flatMap(({ indices = [] }) => indices))].sort((a, b) => a - b);
  const [open, setOpen] = useState(false);
  const [texts, setTexts] = useState<Map<number, string> | undefined>();
  const [undo, setUndo] = useState<"busy" | "done" | undefined>();
  const [error, setError] = useState("");
  const fail = (reason: unknown) => setError(reason instanceof Error ? reason.message : String(reason));
  const kind: Fate = summary === undefined && !edits.some(({ kind }) => kind === "summarize") ? "offloaded" : "summarized";
  const canShow = summary !== undefined || (session !== undefined && indices.length > 0);
  const show = () => {
    if (onShow) return onShow();
    setOpen(!open);
    if (!texts && session) textsAt(session.archive, new Set(indices)).then(setTexts, fail);
  };
  const undoIt = () => {
    setUndo("busy");
    setError("");
    session?.snapshots.undo().then(
      () => {
        setUndo("done");
        onUndo?.();
      },
      (reason) => {
        setUndo(undefined);
        fail(reason);
      },
    );
  };
  const said = undo === "done" ? "Undone: the messages above are in the context again" : stepsOf(edits);
  const action = (label: string, onClick: () => void, more: object = {}) => createElement("button", { type: "button", className: "cc-link", onClick, ...more }, label);
  return createElement(
    "div",
    { className: `cc cc-divider cc-divider-${kind} ${className}`.trim(), role: "group", "aria-label": "Compaction" },
    createElement(
      "p",
      { role: "status" },
      createElement(Icon, { fate: kind }),
      createElement("span", null, said),
      undo !== "done" && createElement("span", { className: "cc-number", suppressHydrationWarning: true }, `${count(before)} → ${count(after)} tokens`),
    ),
    (onShow || canShow) && undo !== "done" && action(open ? "Hide what left" : "Show what left", show, onShow ? {} : { "aria-expanded": open }),
    session && isLast && undo !== "done" && action("Undo", undoIt, { disabled: undo === "busy" }),
    error !== "" && createElement("p", { role: "alert", className: "cc-error" }, error),
    open &&
      undo !== "done" &&
      createElement(
        "div",
        { className: "cc-left" },
        summary !== undefined && createElement("pre", { tabIndex: 0, "aria-label": "Summary" }, summary),
        session && indices.length > 0 && createElement("p", null, texts ? `${plural(texts.size, "message")}, as they were:` : "Reading…"),
        texts &&
          createElement(
            "ol",
            { "aria-label": "What left" },
            indices.map((index) => texts.has(index) && createElement("li", { key: index }, createElement("pre", { tabIndex: 0 }, texts.get(index)))),
          ),
      ),
  );
}

/** What a message became: color, icon and word. */
export function MessageFate({ fate }: { fate: Fate }): ReactElement {
  return createElement("span", { className: `cc-fate cc-fate-${fate}`, title: FATE_HINTS[fate] }, createElement(Icon, { fate }), fate);
}

function Icon({ fate }: { fate: Fate }): ReactElement {
  return createElement("svg", { className: "cc-icon", viewBox: "0 0 16 16", "aria-hidden": true }, createElement("path", { d: FATE_PATHS[fate] }));
}

interface Read {
  before: number;
  after: number;
  edits: readonly { kind: string; indices?: readonly number[] }[];
  summary: string | undefined;
}

function read(given: ShownCompaction): Read {
  if ("usedTokens" in given) {
    const { edits, usedTokens, freedTokens, summary } = given;
    return { before: usedTokens + freedTokens, after: usedTokens, edits: edits.map((kind) => ({ kind })), summary };
  }
  if ("previousTokens" in given) {
    const edits = "appliedEdits" in given ? given.appliedEdits : (given.edits ?? []);
    return { before: given.previousTokens, after: given.currentTokens, edits, summary: given.summary };
  }
  const { edits, usage, result } = given;
  const freed = edits.reduce((sum, { freedTokens }) => sum + freedTokens, 0);
  return { before: usage.usedTokens + freed, after: usage.usedTokens, edits, summary: result?.summary };
}
