/** How the engine comes in Node (Z15, Z17, Z22): not with the import, from its file first, else as code; and what is said when neither can be had. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { copied } from "../support/package-copy.mjs";
import { VERSION } from "../support/version.mjs";
import { ofAnotherBuild, truncated } from "../support/wasm-files.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const whole = readFileSync(join(pkg, "core.wasm"));
const code = readFileSync(join(pkg, "dist/wasm/inline.js"), "utf8");

/** Reads of the engine's file are counted; Node itself reads scripts by the same function. */
const HEAD = `
  const disk = process.getBuiltinModule("fs/promises");
  const { readFile } = disk;
  let reads = 0;
  disk.readFile = (path, ...more) => {
    if (/core\\.wasm$/.test(path)) reads++;
    return readFile(path, ...more);
  };
  const { writeFileSync, copyFileSync } = await import("node:fs");
  const opened = () => library.openSession({ store: "memory", contextWindow: 8_000 }).then((session) => session.close().then(() => "open"), told);
  const told = ({ code, reason, retryable, message }) => ({ code, reason, retryable, message });`;

async function outcome(folder, script, entry = "dist/entry/main.js") {
  const source = `${HEAD}\nconst library = await import("./${entry}").then((library) => library.default?.openSession ? library.default : library);\n${script}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", source], { cwd: folder });
  return JSON.parse(stdout);
}

const say = (what) => `console.log(JSON.stringify(${what}));`;

test("Z15: the import reads nothing, the first call reads the file once, and calls at one time share it", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "dist/wasm/inline.js"));
  const done = await outcome(
    folder,
    `const before = [reads, library.version(), library.isSupported(), library.isContextOverflow({ status: 400, message: "prompt is too long" })];
    const results = await Promise.all([opened(), library.compact([{ role: "user", content: "Hello" }], { contextWindow: 8_000 }).then(({ success }) => success), opened()]);
    ${say("{ before, results, reads }")}`,
  );
  assert.deepEqual(done, { before: [0, VERSION, true, true], results: ["open", true, "open"], reads: 1 });
});

const WRONG = {
  missing: undefined,
  truncated: truncated(whole),
  "a page": "<!doctype html><title>Not found</title>",
  "another build's": ofAnotherBuild(whole),
};

for (const [what, file] of Object.entries(WRONG)) {
  test(`Z15: where the file is ${what}, the engine comes as code`, async (context) => {
    const folder = copied(context);
    if (file === undefined) rmSync(join(folder, "core.wasm"));
    else writeFileSync(join(folder, "core.wasm"), file);
    assert.equal(await outcome(folder, say("await opened()")), "open");
  });
}

test("Z17: a policy that forbids the request, in whatever words, forbids no WebAssembly; the stream of the web unpacks the code", async (context) => {
  const said = "Refused to connect because it violates the document's Content Security Policy directive: connect-src 'none'";
  const script = `process.getBuiltinModule = undefined; globalThis.fetch = async () => { throw new TypeError(${JSON.stringify(said)}) };`;
  assert.deepEqual(await outcome(copied(context), `${script} ${say("[await opened(), reads]")}`), ["open", 0]);
});

test("Z22: where there is neither file nor code the call says so, and the next one tries again", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "dist/wasm/inline.js"));
  rmSync(join(folder, "core.wasm"));
  const [first, second] = await outcome(
    folder,
    `const first = await opened();
    copyFileSync(${JSON.stringify(join(pkg, "core.wasm"))}, "core.wasm");
    ${say("[first, await opened()]")}`,
  );
  assert.deepEqual([first.code, first.reason, first.retryable, second], ["stage_unavailable", undefined, true, "open"]);
});

test("Z17: a file of another build, and no code of this one, is a matter of versions", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "dist/wasm/inline.js"));
  writeFileSync(join(folder, "core.wasm"), WRONG["another build's"]);
  const [first, second] = await outcome(
    folder,
    `const first = await opened();
    copyFileSync(${JSON.stringify(join(pkg, "core.wasm"))}, "core.wasm");
    ${say("[first, await opened()]")}`,
  );
  assert.deepEqual([first.code, first.reason, first.retryable], ["stage_unavailable", "version", false]);
  assert.match(first.message, /Reload it.*Nothing that was stored is lost/);
  assert.equal(second, "open");
});

test("Z15: code that is cut off is no engine", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "core.wasm"));
  const text = code.lastIndexOf('("');
  writeFileSync(join(folder, "dist/wasm/inline.js"), `${code.slice(0, text + 2 + 1000)}");\n`);
  const { code: said, reason, retryable } = await outcome(folder, say("await opened()"));
  assert.deepEqual([said, reason, retryable], ["stage_unavailable", undefined, true]);
});

test("Z15: CommonJS reads the file with the first call, too", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "dist/wasm/inline.js"));
  assert.deepEqual(await outcome(folder, `const before = reads; const result = await opened(); ${say("[before, result, reads]")}`, "cjs/entry/main.js"), [0, "open", 1]);
});

test("Z15: /inline needs no file", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "core.wasm"));
  assert.deepEqual(await outcome(folder, say("[await opened(), reads]"), "dist/entry/inline.js"), ["open", 0]);
});

test("Z17: initialize says which file it was given", async (context) => {
  const folder = copied(context);
  writeFileSync(join(folder, "other.wasm"), WRONG["another build's"]);
  const [other, mine, result] = await outcome(
    folder,
    `const before = await library.initialize(await readFile("other.wasm")).catch(told);
    const mine = await library.initialize(await readFile("core.wasm")).then(() => "started");
    ${say("[before, mine, await opened()]")}`,
    "dist/entry/slim.js",
  );
  assert.deepEqual([other.code, other.reason, other.retryable, mine, result], ["stage_unavailable", "version", false, "started", "open"]);
  assert.match(other.message, /core\.wasm of the same version/);
});

test("Z15: initialize takes the place of all files: each comes from there when it is first needed, and a failure is tried again", async (context) => {
  const folder = copied(context);
  const done = await outcome(
    folder,
    `const asked = [];
    let isDown = false;
    const place = async (name) => {
      asked.push(name);
      return isDown ? new Response("", { status: 503 }) : readFile(name);
    };
    await library.initialize(place);
    const session = await library.openSession({ store: "memory", contextWindow: 8_000 });
    await session.append({ role: "user", content: "Hello" });
    await session.prepare();
    const before = asked.splice(0);
    isDown = true;
    const failed = await session.archive.verify().catch(({ code, stage, message }) => ({ code, stage, message }));
    isDown = false;
    const { ok } = await session.archive.verify();
    ${say("[before, failed, ok, asked.sort(), reads]")}`,
    "dist/entry/slim.js",
  );
  const [before, { code, stage, message }, ok, asked, reads] = done;
  assert.deepEqual([before, code, stage, ok], [["core.wasm"], "stage_unavailable", "rest", true]);
  assert.match(message, /not found at .*status 503/);
  assert.deepEqual([asked, reads], [["rest.wasm", "rest.wasm", "shared.wasm", "shared.wasm"], 0]);
});

test("Z17: of the app's files each must be the one that was asked for", async (context) => {
  const folder = copied(context);
  const [first, later] = await outcome(
    folder,
    `const first = await library.initialize((name) => readFile(name === "core.wasm" ? "rest.wasm" : name)).catch(told);
    await library.initialize((name) => readFile("core.wasm"));
    const session = await library.openSession({ store: "memory", contextWindow: 8_000 });
    ${say("[first, await session.archive.verify().catch(told)]")}`,
    "dist/entry/slim.js",
  );
  assert.deepEqual([first.code, later.code], ["invalid_option", "stage_unavailable"]);
  assert.match(first.message, /core\.wasm of the same version/);
  assert.match(later.message, /(rest|shared)\.wasm of the same version/);
});

test("Z16: /slim needs no initialize", async (context) => {
  assert.equal(await outcome(copied(context), say("await opened()"), "dist/entry/slim.js"), "open");
});

/** A copy of the package in which a stage comes as a file or not at all, and what is read of the engine. */
const STAGED = `
  const files = [];
  const { readFile: read } = disk;
  disk.readFile = (path, ...more) => {
    if (/\\.wasm$/.test(path)) files.push(path.split(/[\\\\/]/).at(-1));
    return read(path, ...more);
  };
  const said = ({ code, stage, reason, retryable, message, cause }) => ({ code, stage, reason, retryable, message, why: cause?.code });
  const turn = (nth) => [{ role: "user", content: "Question " + nth + " about the parser. ".repeat(40) }, { role: "assistant", content: "Answer " + nth + ". ".repeat(40) }];
  const chat = async (options) => {
    const session = await library.openSession({ store: "memory", contextWindow: 8_000, ...options });
    for (let nth = 0; nth < 4; nth++) {
      await session.append(...turn(nth));
      await session.prepare();
    }
    return session;
  };
  const { renameSync } = await import("node:fs");`;

function staged(context, without) {
  const folder = copied(context);
  for (const name of without) {
    rmSync(join(folder, `dist/wasm/inline-${name}.js`));
    renameSync(join(folder, `${name}.wasm`), join(folder, `${name}.away`));
  }
  return folder;
}

test("Z22: a chat asks for the first file alone, its compaction for the ladder, an archive for the rest, each once", async (context) => {
  const steps = await outcome(
    copied(context),
    `${STAGED}
    const steps = [];
    const step = () => steps.push(files.splice(0).sort());
    const session = await chat();
    step();
    await session.compact();
    step();
    await Promise.all([session.compact(), library.planCompaction(turn(1), { contextWindow: 8_000 })]);
    step();
    const found = await Promise.all([session.archive.verify(), session.recall.search("parser"), session.snapshots.take()]);
    step();
    ${say("[...steps, found[0].ok]")}`,
  );
  assert.deepEqual(steps, [["core.wasm"], ["compact.wasm", "shared.wasm"], [], ["rest.wasm"], true]);
});

test("Z4: a session that is opened again, handed over whole and prepared asks for the first file alone", async (context) => {
  const files = await outcome(
    copied(context),
    `${STAGED}
    const { fileStore } = await import("./dist/entry/node.js");
    const store = fileStore("sessions");
    const history = [];
    for (let round = 0; round < 3; round++) {
      const session = await library.openSession({ store, id: "a", contextWindow: 200_000 });
      const id = "call_" + round;
      history.push(...turn(round), { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name: "read", arguments: "{}" } }] });
      history.push({ role: "tool", tool_call_id: id, content: "It is there." }, { role: "assistant", content: "Done." });
      await session.sync(history);
      const { messages } = await session.prepare();
      if (messages.length !== history.length) throw new Error("not all of it");
      session.context.recordUsage({ prompt_tokens: 900, completion_tokens: 10 });
      await session.context.parts();
      await session.close();
    }
    ${say("files")}`,
  );
  assert.deepEqual(files, ["core.wasm"]);
});

test("Z5: a prompt that must be mended asks for what mends it, and is sent when that can be had", async (context) => {
  const done = await outcome(
    staged(context, ["compact"]),
    `${STAGED}
    const session = await chat();
    await session.append({ role: "user", content: "Read it." }, { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "read", arguments: "{}" } }] });
    const failed = await session.prepare().catch(said);
    renameSync("compact.away", "compact.wasm");
    const { messages } = await session.prepare();
    await session.append({ role: "tool", tool_call_id: "c", content: "It is there." });
    ${say("[failed.code, failed.stage, messages.length, (await session.prepare()).messages.length]")}`,
  );
  assert.deepEqual(done, ["stage_unavailable", "compact", 9, 11]);
});

for (const [stage, call] of [["compact", "session.compact()"], ["compact", "session.context.plan()"], ["compact", "session.pins.proposals()"], ["compact", 'import("./dist/entry/react.js").then((react) => react.exportTrajectory(session))'], ["rest", "session.archive.verify()"], ["rest", 'session.fork({ id: "other" })'], ["rest", "session.snapshots.take()"], ["rest", "session.context.explain()"], ["rest", "session.pins.add(0)"], ["rest", 'session.goal.set({ id: "g", description: "Mend the parser.", priority: "high", status: "active", checkpoints: [], decisions: [] })'], ["rest", 'import("./dist/entry/history.js").then((history) => history.validateHistory(turn(1)))'], ["compact", 'import("./dist/entry/history.js").then((history) => history.splitMessages(turn(1)))']]) {
  test(`Z22: ${call} while its stage cannot be had says so, changes nothing, and works when it can`, async (context) => {
    const done = await outcome(
      staged(context, [stage]),
      `${STAGED}
      const session = await chat();
      const before = JSON.stringify([await session.context.parts(), session.context.usage()]);
      const failed = await Promise.all([${call}, ${call}].map((call) => call.catch(said)));
      const same = before === JSON.stringify([await session.context.parts(), session.context.usage()]);
      await session.append(...turn(9));
      renameSync("${stage}.away", "${stage}.wasm");
      await ${call};
      ${say("{ failed, same, messages: (await session.prepare()).messages.length > 0 }")}`,
    );
    for (const { code, stage: which, retryable } of done.failed) assert.deepEqual([code, which, retryable], ["stage_unavailable", stage, true]);
    assert.deepEqual([done.same, done.messages], [true, true]);
  });
}

test("Z22: who listens to pins has the ladder loaded; while it cannot be had, messages are appended, with a warning", async (context) => {
  const done = await outcome(
    staged(context, ["compact"]),
    `${STAGED}
    const rule = { role: "user", content: "Never touch the parser." };
    const session = await chat();
    await session.append(rule);
    const before = files.splice(0).filter((file) => file !== "core.wasm");
    const [warned, pins] = [[], []];
    session.on("warning", ({ code }) => warned.push(code));
    session.on("pin", ({ index }) => pins.push(index));
    await session.append(rule);
    renameSync("compact.away", "compact.wasm");
    await session.append(rule, { role: "assistant", content: "I will not." });
    ${say("{ before, warned, pins, proposed: (await session.pins.proposals()).map(({ index }) => index) }")}`,
  );
  assert.deepEqual(done, { before: [], warned: ["stage_unavailable"], pins: [10], proposed: [8, 9, 10] });
});

test("Z3: a prompt that fits is sent while the ladder cannot be had, with a warning, and climbs it when it can", async (context) => {
  const done = await outcome(
    staged(context, ["compact"]),
    `${STAGED}
    const session = await chat({ compactAt: { tokens: 300 } });
    const warned = [];
    session.on("warning", ({ code }) => warned.push(code));
    const { messages } = await session.prepare();
    renameSync("compact.away", "compact.wasm");
    files.splice(0);
    await session.prepare();
    await session.compact();
    ${say("{ warned, messages: messages.length, files }")}`,
  );
  assert.deepEqual(done, { warned: ["stage_unavailable"], messages: 8, files: ["compact.wasm"] });
});

test("Z22: a stage of another build is not let in: it comes as code, else as a matter of versions", async (context) => {
  const folder = copied(context);
  writeFileSync(join(folder, "rest.wasm"), ofAnotherBuild(readFileSync(join(pkg, "rest.wasm"))));
  const script = `${STAGED} const session = await chat(); ${say("await session.archive.verify().catch(said)")}`;
  assert.equal((await outcome(folder, script)).ok, true);
  rmSync(join(folder, "dist/wasm/inline-rest.js"));
  const { code, stage, reason, retryable } = await outcome(folder, script);
  assert.deepEqual([code, stage, reason, retryable], ["stage_unavailable", "rest", "version", false]);
});
