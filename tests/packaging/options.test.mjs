/** Every option that the packed package has is read, and does something: none is lost on the way to the engine. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { EFFECTS, outcome, withOption } from "../support/option-effects.mjs";
import { pack, project, temporaryFolder } from "./project.mjs";

/** What a group cannot be without. */
const REQUIRED = { "summarize.provider": { kind: "openai", model: "m" }, prices: { input: 3, output: 15 } };

test("options", async (context) => {
  const temporary = await temporaryFolder(context);
  const { archive } = await pack(temporary);
  const folder = await project(join(temporary, "options"), archive, {});
  const dist = join(folder, "node_modules/context-compactor/dist");
  const load = (file) => import(pathToFileURL(join(dist, file)));
  const library = await load("entry/main.js");
  const { OPTIONS } = await load("generated/options.js");
  const rows = OPTIONS.filter(({ kind }) => kind !== "group");

  /** What is said of a value that the option cannot have. */
  async function refusal(options) {
    if ("state" in options) return library.compact([], options).then(() => "nothing", told);
    return library.openSession({ store: "memory", ...options }).then((session) => session.close().then(() => "nothing"), told);
  }

  function told(error) {
    return `${error.code} ${error.field}: ${error.message}`;
  }

  /** A wrong value is refused by the option's own path, and not as an option that there is not. */
  async function isRead(path, wrap) {
    const said = [];
    for (const wrong of [{ wrong: { wrong: { wrong: 1 } } }, -0.5]) said.push(await refusal(wrap(wrong)));
    const read = said.some((text) => text.startsWith(`invalid_option ${path}`) && !text.includes("is not an option"));
    assert.ok(read, `${path}: ${said.join("; ")}`);
  }

  await context.test("every option is read by its path", async () => {
    assert.ok(rows.length > 110, `${rows.length} options`);
    for (const { path } of rows.filter(({ path }) => !path.startsWith("presetOptions."))) {
      const [group] = Object.keys(REQUIRED).filter((name) => path.startsWith(`${name}.`));
      await isRead(path, (wrong) => withOption(group ? withOption({}, group, REQUIRED[group]) : {}, path, wrong));
    }
  });

  await context.test("every name that an option has in an original system is read, under its preset", async () => {
    const names = OPTIONS.flatMap(({ was = [] }) => was.map(([name]) => name.split(".")));
    assert.ok(names.length > 60, `${names.length} names`);
    for (const [preset, name] of names) {
      await isRead(`presetOptions.${name}`, (wrong) => ({ preset, presetOptions: { [name]: wrong } }));
    }
  });

  await context.test("every option takes effect", async () => {
    assert.deepEqual(Object.keys(EFFECTS).sort(), rows.map(({ path }) => path).sort());
    const idle = [];
    for (const [path, [value, beside = {}]] of Object.entries(EFFECTS)) {
      const [without, with_] = [beside, withOption(beside, path, value)].map((options) => outcome(library, options));
      if ((await with_) === (await without)) idle.push(path);
    }
    assert.deepEqual(idle, []);
  });

  await context.test("F22: the default preset's own numbers are options", async () => {
    for (const options of [{ advanced: { cooldownSteps: 3 } }, { keep: { messages: 4 } }, { summarize: { targetTokens: 900 } }]) {
      assert.equal(await refusal(options), "nothing");
    }
  });

  await context.test("F37: what prepare hands out is what the provider's client takes", { todo: "F37" }, async () => {
    const text = await readFile(new URL("../../js/types/results.ts", import.meta.url), "utf8");
    assert.match(text, /type CompactionResult<.*> =[\s\S]*success: true[\s\S]*success: false/);
  });
});
