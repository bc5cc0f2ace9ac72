/**
 * Environments that the package is tried in, with the versions of what each needs: the one place that says them. A row is an app of
 * its own, installed by npm beside the packed package, and nothing is configured for it unless the row says so.
 *
 * `packages`: what npm installs. `files`: texts by path, beside the app and the scenarios. `cases`, by what they are called:
 *
 * - `build`: a command that runs to its end, before the case. What it warns of is measured; a script says `warning: …`.
 * - one of `dist`, a folder to serve; `serve`, the command of a server, which goes on to the next case that has the same; `run`, a
 *   command that says what the app returned. Without any, `dist` is that folder.
 * - `path`, opened in Chromium, or with `asks` requested alone. `bare`: a page of the same app that has nothing of the package.
 *   `reloads`: so many visits come before, as a server for development reloads the page with each package that it finds.
 * - what is found: how the `engine` came (`refused`: it did not), and, none by default, `warnings` of the build and what stood in the
 *   browser's `console`.
 * - `atMost`: how many bytes a page may load first, where that is not what others load.
 * - `error`: what the app is told where the engine is refused. `fails`: what the build says that ends with it.
 */

import { BUNDLERS } from "./rows/bundlers.mjs";
import { FRAMEWORKS } from "./rows/frameworks.mjs";
import { RUNTIMES } from "./rows/runtimes.mjs";

export const ROWS = { ...BUNDLERS, ...FRAMEWORKS, ...RUNTIMES };
