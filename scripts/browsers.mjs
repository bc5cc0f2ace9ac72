/** Where the browsers are that the tests drive. */

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const known = {
  chrome: {
    variable: "CHROME_BIN",
    names: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    places: ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"],
    package: "chromium",
  },
  firefox: {
    variable: "FIREFOX_BIN",
    names: ["firefox-esr", "firefox"],
    places: ["/Applications/Firefox.app/Contents/MacOS/firefox"],
    package: "firefox-esr",
  },
  webkit: {
    variable: "WEBKIT_BIN",
    names: [],
    places: ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/webkit2gtk-4.1/MiniBrowser`),
    package: "libwebkit2gtk-4.1-0",
  },
};

/** Those that every test of browsers is run in. */
export const browsers = ["chrome", "firefox"];

/** Name of the environment variable that names a browser's program. */
export function variable(browser) {
  return known[browser].variable;
}

/** The Debian package of a browser. */
export function debianPackage(browser) {
  return known[browser].package;
}

/** Path of a browser's program: the one that the environment names, else one of the system; or undefined. */
export function findBrowser(browser) {
  return findProgram(known[browser]);
}

/** Path of a program: the one that the environment names in `variable`, else one of these `names` or `places`; or undefined. */
export function findProgram({ variable, names, places }) {
  if (process.env[variable]) return process.env[variable];
  const folders = (process.env.PATH ?? "").split(delimiter);
  const candidates = [...names.flatMap((name) => folders.map((folder) => join(folder, name))), ...places];
  return candidates.find(runs);
}

function runs(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
