import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon.js";

interface Props {
  modelLabel: string;
  hasModel: boolean;
  onModel(): void;
  onStartOver(): void;
}

export function Header({ modelLabel, hasModel, onModel, onStartOver }: Props) {
  return (
    <header class="top">
      <a class="brand" href="./" aria-label="context-compactor, demo">
        <svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
          <rect width="24" height="24" rx="5" fill="var(--accent)" />
          <path
            d="M6 7.5h12M8.2 12h7.6M10.4 16.5h3.2"
            stroke="var(--panel)"
            stroke-width="2.2"
            stroke-linecap="round"
          />
        </svg>
        <span>context-compactor</span>
      </a>
      <span class="local">
        <Icon name="lock" />{" "}
        {hasModel
          ? "Runs in this page. Your model's endpoint is all that it calls."
          : "Runs in this page. No key, no server, nothing leaves it."}
      </span>
      <nav class="actions" aria-label="Demo">
        <a class="button docs" href="docs/index.html">
          Docs
        </a>
        <button type="button" class="button" aria-label={modelLabel} onClick={onModel}>
          <Icon name="model" /> <span>{modelLabel}</span>
        </button>
        <button
          type="button"
          class="button"
          aria-label="Start over"
          onClick={onStartOver}
          title="Deletes this session and begins again"
        >
          <Icon name="restart" /> <span>Start over</span>
        </button>
        <ThemeToggle />
      </nav>
    </header>
  );
}

function ThemeToggle() {
  const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? system());
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      if (!document.documentElement.dataset.theme) setTheme(system());
    };
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  const other = theme === "dark" ? "light" : "dark";
  const toggle = () => {
    document.documentElement.dataset.theme = other;
    setTheme(other);
    try {
      localStorage.setItem("theme", other);
    } catch {
      // The choice lasts until the page is left.
    }
  };
  return (
    <button
      type="button"
      class="button icon-only"
      onClick={toggle}
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
    >
      <Icon name={theme === "dark" ? "sun" : "moon"} />
    </button>
  );
}
