/** Steps of a page whose database gets a flipped bit between two runs of its browser. */

import * as library from "./offload.mjs";
import "./session-page.mjs";
import { eager, messagesOf } from "./writer.mjs";

const ID = "flipped";
/** Whoever looks changes nothing. */
const LARGE = { contextWindow: 100_000_000, compactAt: { fraction: 1 } };

async function historyOf(session) {
  const [history, gaps] = [[], []];
  for await (const message of session.archive.history({ onGap: (gap) => gaps.push(gap) })) history.push(JSON.stringify(message));
  return { history, gaps };
}

/** What an error is for an app; what is no error of the package is thrown. */
function codeOf(error) {
  if (!library.CompactionError.isInstance(error)) throw error;
  return { code: error.code, message: error.message };
}

Object.assign(globalThis.sessions, {
  /** Writes a session of so many calls to the default store, with offloads and a summary. Returns its messages. */
  async write(calls) {
    const summarize = () => "## Current Status\nThe files were read, one after the other, and each of them is fine.";
    const session = await library.openSession({ id: ID, ...eager(summarize) });
    for (let n = 0; n < calls; n++) {
      await session.append(...messagesOf(`${ID}/page/${n}`));
      if (n % 5 === 3) await session.prepare();
      if (n === calls >> 1) await session.compact();
    }
    const { history } = await historyOf(session);
    const isDurable = session.archive.durability;
    await session.close();
    if (isDurable === "none") throw new Error("the session is in memory alone");
    return history;
  },

  /** What an app finds, what it is told, and whether the session goes on, also when it is opened again. As text. */
  async look() {
    const started = performance.now();
    const found = { told: [], errors: [], history: [], gaps: [], problems: [] };
    const open = async (options) => {
      const session = await library.openSession({ id: ID, ...LARGE, ...options });
      session.on("data-loss", (loss) => found.told.push(loss));
      session.on("warning", ({ code, durable }) => durable && found.errors.push({ code, message: "in memory alone" }));
      return session;
    };
    /** An app asks its user what to do, and goes on without what is lost. */
    const opened = () =>
      open().catch((error) => {
        found.errors.push(codeOf(error));
        return open({ acceptDataLoss: true });
      });
    const goOn = async (session) => {
      const more = messagesOf(`${ID}/more`);
      await session.append(...more);
      await session.prepare();
      await session.close();
      const known = found.told.length;
      const again = await open();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const { history, gaps } = await historyOf(again);
      const { problems } = await again.archive.verify();
      found.more = more.map((message) => JSON.stringify(message));
      found.again = { history, gaps, problems, told: found.told.slice(known) };
      await again.close();
    };
    let step = "open";
    const steps = async () => {
      step = "open";
      const session = await opened();
      step = "history";
      await new Promise((resolve) => setTimeout(resolve, 50));
      Object.assign(found, await historyOf(session));
      step = "prepare";
      await session.prepare();
      step = "verify";
      found.problems = (await session.archive.verify()).problems;
      step = "append";
      await goOn(session);
    };
    try {
      await steps().catch((error) => {
        // Its rows went while it was open: an app opens it again, as the error says.
        if (error.code !== "data_loss" || step === "open") throw error;
        found.errors.push(codeOf(error));
        return steps();
      });
    } catch (error) {
      found.failed = { step, ...codeOf(error) };
    }
    found.ms = Math.round(performance.now() - started);
    return JSON.stringify(found);
  },
});
