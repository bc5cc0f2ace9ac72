/**
 * `npm run advisories`: packages of the lock files that an advisory names, by the database of osv.dev, which has those of
 * GitHub and of RustSec. `CC_ADVISORIES` is another address of the same interface.
 */

import { Problem, root, say, script } from "./process.mjs";
import { crates, npmPackages } from "./lint/packages.mjs";

const SERVICE = process.env.CC_ADVISORIES ?? "https://api.osv.dev";
/** The service takes 1,000. */
const BATCH = 500;

const asked = (ecosystem) => ({ name, version }) => ({ package: { ecosystem, name }, version });

/** Ids of the advisories on each package; none when the service does not answer. */
async function advisories(queries) {
  let response;
  try {
    const body = JSON.stringify({ queries });
    const headers = { "content-type": "application/json" };
    response = await fetch(`${SERVICE}/v1/querybatch`, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) });
  } catch {
    return undefined;
  }
  if (response.status === 400) throw new Problem(`${SERVICE}: ${await response.text()}`);
  if (!response.ok) return undefined;
  const { results } = await response.json();
  return results.map(({ vulns = [] }) => vulns.map(({ id }) => id));
}

await script(async () => {
  // Crates of this repository are in no registry.
  const published = (await crates(root)).filter(({ source }) => source !== null);
  const queries = [...npmPackages(root).map(asked("npm")), ...published.map(asked("crates.io"))];
  const found = [];
  let isReached = true;
  for (let at = 0; at < queries.length; at += BATCH) {
    const batch = queries.slice(at, at + BATCH);
    const ids = await advisories(batch);
    isReached &&= ids !== undefined;
    if (!ids) break;
    batch.forEach(({ package: { name }, version }, i) => ids[i].length > 0 && found.push(`${name} ${version}: ${ids[i].join(", ")}`));
  }
  if (found.length > 0) throw new Problem(`https://osv.dev has advisories on\n${[...new Set(found)].join("\n")}`);
  say("advisories", isReached ? `none on ${queries.length} packages` : "skipped: not reachable");
});
