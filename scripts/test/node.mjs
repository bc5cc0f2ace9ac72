/** The tests that Node's own runner runs, a folder at a time. */

import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../process.mjs";
import { failedAtLeastOnce, logged, reports } from "./runner.mjs";
import { skippedIn } from "./skips.mjs";

/** Files `*.test.mjs` below a folder. Node 20 takes no patterns. */
export function testFiles(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return ["node_modules", "dist"].includes(entry.name) ? [] : testFiles(path);
      return entry.name.endsWith(".test.mjs") ? [path] : [];
    })
    .sort();
}

/** Runs files; `name` is that of their reports. */
export async function runFiles(log, name, files, args = []) {
  // Without a file Node's runner would take every test that it finds.
  if (files.length === 0) throw new Error(`${name}: there are no tests`);
  const stem = join(reports, name.replaceAll(/\W/g, "-"));
  const [report, failures] = [`${stem}.tap`, `${stem}.failures`];
  for (const file of [report, failures]) rmSync(file, { force: true });
  const { ok } = await logged(log, process.execPath, [
    "--test",
    // Of a whole file too, and a busy machine takes ten times as long: what waits has shorter limits of its own.
    "--test-timeout=1800000",
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    "--test-reporter=tap",
    `--test-reporter-destination=${report}`,
    `--test-reporter=${join(root, "scripts/test/failures.mjs")}`,
    `--test-reporter-destination=${failures}`,
    ...args,
    ...files,
  ]);
  const text = existsSync(report) ? readFileSync(report, "utf8") : "";
  const count = (word) => Number(text.match(new RegExp(`^# ${word} (\\d+)$`, "m"))?.[1] ?? 0);
  const result = {
    passed: count("pass"),
    failed: count("fail") + count("cancelled"),
    skipped: count("skipped") + count("todo"),
    skips: skippedIn(text),
    failures: existsSync(failures) ? [readFileSync(failures, "utf8").trimEnd()].filter(Boolean) : [],
    slowest: Array.from(
      text.matchAll(/^ *(?:not )?ok \d+ - (.*)\n *---\n *duration_ms: ([\d.]+)/gm),
      ([, test, ms]) => ({ name: `${name} ${test}`, ms: Number(ms) }),
    ),
  };
  return failedAtLeastOnce(result, ok);
}
