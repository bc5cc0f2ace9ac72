/** Line icons on a 16 × 16 grid. They are decoration: the text beside them carries the meaning. */
const PATHS = {
  play: "M5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  next: "M4 4v8l5-4zM11.5 4v8",
  previous: "M12 4v8L7 8zM4.5 4v8",
  verbatim: "M3.5 8.5l3 3 6-7",
  summarized: "M3 4h10M3 8h7M3 12h4",
  offloaded: "M8 2.5v7M5 7l3 3 3-3M3 12.5h10",
  reduced: "M3 5h10M5 8h6M7 11h2",
  dropped: "M4 4l8 8M12 4l-8 8",
  lock: "M4.5 7.5h7v5h-7zM6 7.5V5.5a2 2 0 0 1 4 0v2",
  file: "M4.5 2.5h5l2.5 2.5v8.5h-7.5zM9.5 2.5V5h2.5",
  model: "M8 2.5l1.4 4.1L13.5 8l-4.1 1.4L8 13.5 6.6 9.4 2.5 8l4.1-1.4z",
  restart: "M3.5 8a4.5 4.5 0 1 0 1.5-3.4M3.5 2.8v2.6h2.6",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M12.8 9.6A5.2 5.2 0 0 1 6.4 3.2a5.2 5.2 0 1 0 6.4 6.4z",
  copy: "M5.5 5.5v-2h7v7h-2M3.5 5.5h7v7h-7z",
  chevron: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  send: "M8 13V3.5M4 7.5l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  const filled = name === "play" || name === "stop";
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      fill={filled ? "currentColor" : "none"}
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
