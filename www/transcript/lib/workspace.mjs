import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { createTwoFilesPatch } from "diff";

/** The repository that the recorded run works on: read from a folder, edited in memory. */
export function createWorkspace(folder) {
  const files = new Map();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    files.set(relative(folder, path).split(sep).join("/"), readFileSync(path, "utf8"));
  }
  let committed = new Map(files);

  const read = (path) => {
    const text = files.get(path);
    if (text === undefined) throw new Error(`the scenario reads a file that does not exist: ${path}`);
    return text;
  };

  return {
    read,
    /** With line numbers, as the agent's tool shows it. */
    show(path, from = 1, to = Infinity) {
      const lines = read(path).replace(/\n$/, "").split("\n");
      const shown = lines.slice(from - 1, to).map((line, i) => `${String(from + i).padStart(5)}│${line}`);
      const last = Math.min(to, lines.length);
      return `${path} (lines ${from}-${last} of ${lines.length})\n${shown.join("\n")}`;
    },
    write(path, text) {
      const known = files.has(path);
      files.set(path, text);
      return `${known ? "Overwrote" : "Created"} ${path} (${text.split("\n").length - 1} lines).`;
    },
    edit(path, before, after) {
      const text = read(path);
      if (text.split(before).length !== 2)
        throw new Error(`the scenario's edit of ${path} does not match once`);
      files.set(
        path,
        text.replace(before, () => after),
      );
      const line = text.slice(0, text.indexOf(before)).split("\n").length;
      return `Edited ${path}: replaced ${before.split("\n").length} line(s) at line ${line} with ${after.split("\n").length}.`;
    },
    /** Matches as ripgrep prints them. */
    grep(pattern, under = "") {
      const expression = new RegExp(pattern);
      const found = [];
      for (const [path, text] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
        if (!path.startsWith(under)) continue;
        text
          .split("\n")
          .forEach((line, i) => expression.test(line) && found.push(`${path}:${i + 1}:${line}`));
      }
      return found.length > 0 ? found.join("\n") : "(no matches)";
    },
    changed: () => [...files.keys()].filter((path) => files.get(path) !== committed.get(path)).sort(),
    diff(paths) {
      const wanted = paths ?? this.changed();
      return wanted
        .map((path) => {
          const patch = createTwoFilesPatch(
            `a/${path}`,
            `b/${path}`,
            committed.get(path) ?? "",
            read(path),
            "",
            "",
            { context: 3 },
          );
          return `diff --git a/${path} b/${path}\n${patch.replace(/^=+\n/, "").replace(/\t(?=\n)/g, "")}`;
        })
        .join("");
    },
    commit() {
      committed = new Map(files);
    },
  };
}
