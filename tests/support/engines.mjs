/** The engines of IndexedDB that tests of storage run in. */

import { findBrowser } from "../../scripts/browsers.mjs";
import { launch } from "./session.mjs";
import { launchWebkit } from "./webkit.mjs";

/** Those that a protocol drives. Chromium stores in LevelDB now and in SQLite soon. Firefox stores in its main process. */
export const DRIVEN = {
  chromium: { browser: "chrome", targets: ["browser", "renderer", "storage"] },
  "chromium-sqlite": {
    browser: "chrome",
    targets: ["browser", "renderer", "storage"],
    args: ["--enable-features=IdbSqliteBackingStore"],
  },
  firefox: { browser: "firefox", targets: ["browser", "renderer"] },
};

/** And those whose pages have to ask what to do (`remote.mjs`). `targets` is what can be killed of each (`kills.mjs`). */
export const ENGINES = {
  ...DRIVEN,
  webkitgtk: { browser: "webkit", targets: ["browser", "renderer", "storage"] },
};

/** Why `engine` cannot be run here; undefined when it can, or when it has to be. */
export function missing(engine) {
  return engine === "webkitgtk" && !findBrowser("webkit") ? "WebKitGTK is not installed" : undefined;
}

/** Starts `engine` on the data of `profile`, one of `makeProfile`. */
export function startEngine(engine, { profile }) {
  const { browser, args } = ENGINES[engine];
  return browser === "webkit" ? launchWebkit({ profile }) : launch(browser, { profile, args });
}
