/** The small model (`setup.sh`), asked line by line. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** `{ ask, end }`, or undefined where the model is not installed. */
export function startModel() {
  if (!existsSync(here(".venv/bin/python"))) return undefined;
  const process = spawn(here(".venv/bin/python"), [here("score.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface(process.stdout)[Symbol.asyncIterator]();
  return {
    ask: async (question) => {
      process.stdin.write(`${JSON.stringify(question)}\n`);
      const { value, done } = await answers.next();
      if (done) throw new Error("the small model ended");
      return JSON.parse(value);
    },
    end: () => process.stdin.end(),
  };
}
