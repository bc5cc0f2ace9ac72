/** Set-up: what the build and the tests need and the repository does not hold. Does nothing twice. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { browsers as driven, debianPackage, findBrowser, variable } from "./browsers.mjs";
import { findServer, serverPackage, servers } from "./servers.mjs";
import { Problem, exists, must, root, run, say } from "./process.mjs";

const target = "wasm32-unknown-unknown";

/** Prepares for a build and the demo; with `tools` for benches and tests, with `browsers` for those in browsers, with
 *  `databases` for those of stores on servers. */
export async function setup({ tools = false, browsers = false, databases = false } = {}) {
  // They use the network and different programs: side by side.
  await Promise.all([
    rust().then(() => (tools ? spelling() : undefined)),
    packages(tools ? "all" : "demo"),
    // Debian's packages are installed by one at a time.
    (browsers ? systemBrowsers() : Promise.resolve()).then(() => (databases ? systemServers() : undefined)),
  ]);
}

// ---- Rust -----------------------------------------------------------------------------------------------------

/** The toolchain and its target. */
export async function rust() {
  // The standard library is built along with the engine: see CONTRIBUTING.md.
  if (process.env.CC_BUILD_STD) return;
  if (await standardLibrary()) return;
  if (!exists("cargo")) {
    throw new Problem("Rust is missing: install rustup; the version is in rust-toolchain.toml");
  }
  if (exists("rustup")) {
    // Without an argument it reads rust-toolchain.toml. An existing toolchain is left as it is.
    if (!(await toolchainRuns())) {
      say("set-up", "Rust toolchain of rust-toolchain.toml");
      await must("rustup", ["toolchain", "install"]);
    }
    if (await standardLibrary()) return;
    say("set-up", `rustup target add ${target}`);
    const added = await run("rustup", ["target", "add", target], { output: "hide" });
    if (added.ok && (await standardLibrary())) return;
  }
  const archive = process.env.CC_WASM_STD ?? join(root, "../shared/toolchain/wasm32-std-1.95.tar.xz");
  const version = (await must("rustc", ["--version"])).split(" ")[1];
  if (existsSync(archive) && version.startsWith("1.95.")) {
    say("set-up", `standard library for ${target} from an archive`);
    const sysroot = (await must("rustc", ["--print", "sysroot"])).trim();
    await must("tar", ["-xJf", resolve(archive), "-C", join(sysroot, "lib/rustlib")]);
    if (await standardLibrary()) return;
  }
  throw new Problem(
    [
      `Rust's standard library for ${target} is missing, and rustup could not add it. Either`,
      `- run \`rustup target add ${target}\` where it can download, or`,
      "- set CC_WASM_STD to an archive of lib/rustlib/wasm32-unknown-unknown of Rust 1.95 (tar.xz), or",
      "- on Debian, build it from source with the packages rustc-web cargo-web rust-web-src lld-22:",
      "  CONTRIBUTING.md, \"Without rustup's target\".",
    ].join("\n"),
  );
}

async function toolchainRuns() {
  return (await run("rustc", ["--version"], { output: "hide" })).ok;
}

async function standardLibrary() {
  const args = ["--print", "target-libdir", "--target", target];
  const { ok, output } = await run("rustc", args, { output: "hide" });
  const folder = output.trim();
  return ok && existsSync(folder) && readdirSync(folder).some((file) => /^libstd-.*\.rlib$/.test(file));
}

// ---- npm ------------------------------------------------------------------------------------------------------

/**
 * `demo` leaves the test tools out. What has been installed with them, by `npm ci` itself or here, stays so: `npm start`
 * and `npm run build` remove nothing.
 */
async function packages(wanted) {
  const stamp = join(root, "node_modules/.set-up");
  const kept = existsSync(stamp) ? readFileSync(stamp, "utf8") : "";
  // The link to the workspace of the tests is there only when everything was installed.
  const scope = existsSync(join(root, "node_modules/tests")) ? "all" : wanted;
  const lock = createHash("sha256").update(readFileSync(join(root, "package-lock.json"))).digest("hex");
  const current = `${scope} ${lock} ${process.platform} ${process.arch}\n`;
  if (kept === current) return;
  const only = scope === "all" ? [] : ["-w", "www", "-w", "pkg", "-w", "pkg-evaluator", "-w", "pkg-vocabularies", "-w", "pkg-ui", "--include-workspace-root"];
  say("set-up", ["npm ci", ...only].join(" "));
  // No package needs its install script: esbuild and workerd ship their programs as packages.
  await must("npm", ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", ...only]);
  writeFileSync(stamp, current);
}

// ---- spell checker ----------------------------------------------------------------------------------------------

const TYPOS = "1.52.0";
const spellFolder = join(root, ".tools/typos");

/** The spell checker's program. */
export const spellChecker = join(spellFolder, "bin", process.platform === "win32" ? "typos.exe" : "typos");

/** Comes built from PyPI, in two seconds; where there is no pip, cargo builds it. */
async function spelling() {
  const { output } = await run(spellChecker, ["--version"], { output: "hide" });
  if (output.trim() === `typos-cli ${TYPOS}`) return;
  say("set-up", `typos ${TYPOS}`);
  rmSync(spellFolder, { recursive: true, force: true });
  const python = process.platform === "win32" ? "python" : "python3";
  const pip = ["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--target", spellFolder, `typos==${TYPOS}`];
  if ((await run(python, pip, { output: "hide" })).ok) return;
  await must("cargo", ["install", "--locked", "--root", spellFolder, "--version", TYPOS, "typos-cli"]);
}

// ---- browsers -------------------------------------------------------------------------------------------------

async function systemBrowsers() {
  await missingBrowsers();
  await beside();
}

async function missingBrowsers() {
  const absent = () => driven.filter((browser) => !findBrowser(browser));
  const missing = absent();
  if (missing.length === 0) return;
  const names = missing.map(debianPackage);
  if (isDebian() && process.getuid?.() === 0) {
    say("set-up", `apt-get install ${names.join(" ")}`);
    const env = { DEBIAN_FRONTEND: "noninteractive" };
    await must("apt-get", ["update", "-qq"], { env });
    await must("apt-get", ["install", "-qq", "-y", "--no-install-recommends", ...names], { env });
  }
  const left = absent();
  if (left.length > 0) {
    const variables = left.map(variable).join(" and ");
    throw new Problem(
      `The tests need ${left.join(" and ")}: install it (Debian: apt-get install ${left.map(debianPackage).join(" ")}), ` +
        `or set ${variables} to the program's path`,
    );
  }
}

/** WebKitGTK is another one that can be killed, and strace sees syncs, where they can be installed. Tests say when they are not there. */
async function beside() {
  await wanted([...(findBrowser("webkit") ? [] : [debianPackage("webkit"), "xvfb"]), ...(exists("strace") ? [] : ["strace"])]);
}

/** Servers of databases, which the tests start themselves. */
async function systemServers() {
  await wanted(servers.filter((server) => !findServer(server)).map(serverPackage));
}

/** Installs packages of Debian where that can be done. */
async function wanted(names) {
  if (names.length === 0 || !isDebian() || process.getuid?.() !== 0) return;
  say("set-up", `apt-get install ${names.join(" ")}`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args) => run("apt-get", ["-qq", ...args], { env, output: "hide" });
  await apt("update");
  const { ok } = await apt("install", "-y", "--no-install-recommends", ...names);
  if (!ok) say("set-up", `${names.join(" ")} could not be installed: left out`);
}

function isDebian() {
  const release = "/etc/os-release";
  return existsSync(release) && /^ID=debian$/m.test(readFileSync(release, "utf8"));
}
