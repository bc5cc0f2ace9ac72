import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

export interface Tab<Name extends string> {
  name: Name;
  title: string;
  badge?: number;
  content: ComponentChildren;
}

/** Tabs with arrow keys, as the ARIA practices describe them. */
export function Tabs<Name extends string>({
  tabs,
  selected,
  onSelect,
  label,
}: {
  tabs: Tab<Name>[];
  selected: Name;
  onSelect(name: Name): void;
  label: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = tabs.findIndex(({ name }) => name === selected);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    onSelect(next.name);
    list.current?.querySelector<HTMLElement>(`#tab-${next.name}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ name, title, badge }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === selected}
            aria-controls={`panel-${name}`}
            tabIndex={name === selected ? 0 : -1}
            onClick={() => onSelect(name)}
          >
            {title}
            {badge !== undefined && badge > 0 && <span class="badge number">{badge}</span>}
          </button>
        ))}
      </div>
      {tabs.map(({ name, content }) => (
        <div
          key={name}
          role="tabpanel"
          id={`panel-${name}`}
          class="panel"
          aria-labelledby={`tab-${name}`}
          hidden={name !== selected}
        >
          {name === selected && content}
        </div>
      ))}
    </>
  );
}
