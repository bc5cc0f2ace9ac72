import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { marked } from "../logic/marked.js";
import { describe } from "../run/describe.js";
import type { RunController } from "../run/controller.js";
import { Icon } from "./icon.js";
import { count } from "./labels.js";

interface Props {
  id: string;
  isRetired?: boolean;
  title: string;
  line: ComponentChildren;
  size: string;
  place: string;
  open: boolean;
  onToggle(open: boolean): void;
  children: ComponentChildren;
}

/** A line that opens to a text. */
export function Entry({ id, isRetired, title, line, size, place, open, onToggle, children }: Props) {
  return (
    <li id={id} class={`${isRetired ? "retired" : ""} ${open ? "open" : ""}`}>
      <button type="button" class="head" aria-expanded={open} onClick={() => onToggle(!open)}>
        <span class="kind offload">
          <Icon name="offloaded" />
        </span>
        <span class="title">
          <b>{title}</b>
          <span>{line}</span>
        </span>
        <span class="change number">
          <b>{size}</b>
          <span>{place}</span>
        </span>
        <Icon name="chevron" />
      </button>
      {open && children}
    </li>
  );
}

interface ContentProps {
  run: RunController;
  refName: string;
  sha256?: string | undefined;
  /** What to look at in it. */
  words?: readonly string[];
  /** What it is. */
  children: ComponentChildren;
}

/** A text that is read from the session when it is shown. */
export function Content({ run, refName, sha256, words = [], children }: ContentProps) {
  const [text, setText] = useState<string | undefined>();
  const [error, setError] = useState<string | undefined>();
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    let gone = false;
    run.read(refName).then(
      (value) => gone || setText(value),
      (reason: unknown) => gone || setError(describe(reason)),
    );
    return () => {
      gone = true;
    };
  }, [run, refName]);
  useEffect(() => {
    const mark = box.current?.querySelector("mark");
    if (box.current && mark) box.current.scrollTop = mark.offsetTop - box.current.offsetTop - box.current.clientHeight / 3;
  }, [text]);
  return (
    <div class="body">
      <p class="facts">
        {children}
        {text === undefined ? "" : ` · ${count([...text].length)} characters`}
      </p>
      {error ? (
        <p class="error" role="alert">
          {error}
        </p>
      ) : (
        <pre tabIndex={0} aria-busy={text === undefined} ref={box}>
          {text === undefined ? "Reading…" : marked(text, words).map(([part, isMarked], i) => (isMarked ? <mark key={i}>{part}</mark> : part))}
        </pre>
      )}
      {sha256 && (
        <p class="facts">
          SHA-256 <code>{sha256}</code>
        </p>
      )}
    </div>
  );
}
