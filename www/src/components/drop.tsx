import { useRef } from "preact/hooks";
import { Icon } from "./icon.js";

interface Props {
  /** A file is held over the page. */
  isOver: boolean;
  onFile(file: File): void;
  onPaste(): void;
}

/** Where a history goes in. A file can be dropped anywhere on the page. */
export function Drop({ isOver, onFile, onPaste }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <div class={`drop ${isOver ? "over" : ""}`}>
      <p>
        <Icon name="file" /> <b>Drop your transcript</b> and see it played here
      </p>
      <p class="actions">
        <button type="button" class="button primary" onClick={() => picker.current?.click()}>
          Choose a file
        </button>
        <button type="button" class="button" onClick={onPaste}>
          Paste it
        </button>
      </p>
      <input
        ref={picker}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label="Transcript"
        accept=".json,.jsonl,.ndjson,.txt,application/json"
        onChange={({ currentTarget: input }) => {
          const [file] = input.files ?? [];
          // The same file can be chosen again.
          input.value = "";
          if (file) onFile(file);
        }}
      />
      <p class="hint">Claude Code, Codex, or messages as JSON or JSON lines. It stays in this browser.</p>
    </div>
  );
}
