import { createRandom } from "../lib/random.mjs";

/** A shorter run in the Anthropic format: why thumbnails arrive late. */
export function queueTriage() {
  const random = createRandom(77);
  const messages = [];
  const user = (text) => messages.push({ role: "user", content: text });
  const say = (text) => messages.push({ role: "assistant", content: [{ type: "text", text }] });
  const step = (text, ...calls) => {
    const ids = calls.map(() => `toolu_01${random.id(22)}`);
    const uses = calls.map(([name, input], i) => ({ type: "tool_use", id: ids[i], name, input }));
    messages.push({ role: "assistant", content: text ? [{ type: "text", text }, ...uses] : uses });
    messages.push({ role: "user", content: calls.map(([, , content, failed], i) => ({ type: "tool_result", tool_use_id: ids[i], content, ...(failed ? { is_error: true } : {}) })) });
  };
  const table = (head, rows) => [head, ...rows].map((row) => row.map((cell, i) => (i === 0 ? String(cell).padEnd(22) : String(cell).padStart(12))).join("")).join("\n");

  user("Thumbnails for new uploads arrive up to 20 minutes late since Tuesday. Please find out why. Constraints: production is read-only for you, do not restart anything, and do not raise the worker count. We pay per worker and the budget is fixed at 12.");
  step(
    "I'll look at the queue first: depth, age and throughput over the last two days.",
    ["metrics_query", { expr: "queue_depth{queue=\"thumbs\"}", range: "48h", step: "1h" },
      table(["hour", "depth", "oldest s", "done/min"], Array.from({ length: 48 }, (_, h) => {
        const late = h > 19 ? 1 : 0;
        const busy = Math.max(0, Math.sin(((h % 24) - 6) / 3.6));
        return [`2025-10-0${h < 24 ? 6 : 7} ${String(h % 24).padStart(2, "0")}:00`, Math.round(40 + busy * (late ? 9_400 : 220) + random.int(0, 30)), Math.round(2 + busy * (late ? 1_190 : 9)), Math.round(410 - late * 170 - busy * 20 + random.int(0, 14))];
      }))],
    ["kubectl", { command: "get pods -l app=thumbs -o wide" },
      table(["NAME", "READY", "STATUS", "RESTARTS", "CPU"], Array.from({ length: 12 }, () => [`thumbs-7d9f-${random.id(5, "bcdfghjkmnpqrstvwxz2456789")}`, "1/1", "Running", random.int(0, 1), `${random.int(180, 260)}m/2000m`]))],
  );
  step(
    "Throughput fell by 40 % at 20:00 on Tuesday while CPU is nearly idle: the workers wait for something. What was deployed then?",
    ["kubectl", { command: "rollout history deployment/thumbs" }, "REVISION  CHANGE-CAUSE\n41        resize: keep ICC profiles\n42        storage: read originals through the gateway (2025-10-06T19:52Z)\n43        log level back to info"],
    ["read_logs", { app: "thumbs", since: "30m", filter: "job" },
      Array.from({ length: 30 }, (_, i) => JSON.stringify({ ts: `2025-10-07T21:${String(10 + i).padStart(2, "0")}:${String((i * 19) % 60).padStart(2, "0")}.${random.int(100, 999)}Z`, level: "info", worker: random.int(1, 12), job: `th_${random.hex(10)}`, bytes: random.int(240_000, 9_800_000), fetchMs: i % 7 === 0 ? random.int(12_000, 29_800) : random.int(90, 900), resizeMs: random.int(60, 340), putMs: random.int(30, 120) })).join("\n")],
  );
  say("One in seven fetches takes 12 to 30 seconds; resizing takes 0.2 s. Revision 42 moved reads of the originals to the storage gateway. I'll look at the gateway's side of those slow requests.");
  step(
    "",
    ["read_logs", { app: "storage-gateway", since: "30m", filter: "thumbs" },
      Array.from({ length: 28 }, (_, i) => `10.4.${random.int(0, 3)}.${random.int(2, 250)} - thumbs [07/Oct/2025:21:${String(10 + i).padStart(2, "0")}:${String((i * 23) % 60).padStart(2, "0")} +0000] "GET /o/${random.hex(16)} HTTP/1.1" 200 ${random.int(240_000, 9_800_000)} upstream=${i % 7 === 0 ? "cold-2" : "warm-1"} ttfb=${i % 7 === 0 ? `${random.int(11, 29)}.${random.int(100, 999)}` : `0.${random.int(100, 700)}`}`).join("\n")],
    ["read_file", { path: "gateway/routes.yaml" }, "routes:\n  - match: { client: portal, op: read }\n    upstreams: [warm-1, warm-2]\n  - match: { client: thumbs, op: read }\n    # originals younger than an hour are on warm-1 only; the rest may come from anywhere\n    upstreams: [warm-1, cold-2]\n    policy: round-robin\n    retry: { on: [404], to: any, after: 10s }\n  - match: { client: archive, op: read }\n    upstreams: [cold-1, cold-2]\n"],
  );
  say("Found it. The route for `thumbs` sends part of the reads to `cold-2`, which does not have new uploads yet, and then waits 10 s and more before it asks `warm-1`. Every slow request has upstream cold-2. The comment in routes.yaml even says that originals younger than an hour are on warm-1 only.");
  user("Makes sense. What is the smallest change? Remember the limits I gave you.");
  say("One line: `upstreams: [warm-1, warm-2]` for the thumbs route, as the portal has it. It needs no restart (the gateway reloads routes by itself), no extra worker (they stay at 12), and I have only read in production; the change is yours to apply. Expected effect: fetch back to under a second, about 400 thumbnails a minute, and the backlog of 9,000 gone in under half an hour.");
  user("Applied at 21:48. Can you confirm?");
  step(
    "",
    ["metrics_query", { expr: "queue_depth{queue=\"thumbs\"}", range: "40m", step: "2m" },
      table(["minute", "depth", "oldest s", "done/min"], Array.from({ length: 20 }, (_, i) => [`21:${String(40 + i).slice(-2)}`, i < 5 ? 9_310 + i * 40 : Math.max(38, 9_470 - (i - 4) * 690), i < 5 ? 1_180 : Math.max(2, 1_180 - (i - 4) * 86), i < 5 ? 236 + random.int(0, 9) : 402 + random.int(0, 22)]))],
    ["read_logs", { app: "storage-gateway", since: "5m", filter: "cold-2 thumbs" }, "(no lines)", false],
  );
  say("Confirmed: 400 thumbnails a minute again, the oldest job is down from 20 minutes to seconds, and no thumbs request has gone to cold-2 since. Worker count: still 12.");
  user("Great. Before I close the incident: were any uploads lost, or only late? And does another client of the gateway have the same mistake?");
  step(
    "Two questions, two checks. Every upload of the two days must have a thumbnail by now; and the other routes must not list a store that lacks new objects.",
    ["sql", { database: "readonly", query: "SELECT date_trunc('hour', created_at) AS hour, count(*) AS uploads, count(t.id) AS thumbs FROM uploads u LEFT JOIN thumbs t USING (upload_id) WHERE created_at >= '2025-10-06' GROUP BY 1 ORDER BY 1" },
      table(["hour", "uploads", "thumbs", "missing"], Array.from({ length: 46 }, (_, h) => {
        const uploads = Math.round(600 + Math.max(0, Math.sin(((h % 24) - 6) / 3.6)) * 13_000 + random.int(0, 400));
        const missing = h === 33 ? 2 : 0;
        return [`2025-10-0${h < 24 ? 6 : 7} ${String(h % 24).padStart(2, "0")}:00`, uploads, uploads - missing, missing];
      }))],
    ["kubectl", { command: "get configmap gateway-routes -o jsonpath='{.data.routes\\.yaml}' | yq '.routes[] | [.match.client, .match.op, .upstreams | join(\"+\")] | @tsv'" },
      "portal\tread\twarm-1+warm-2\nthumbs\tread\twarm-1+warm-2\narchive\tread\tcold-1+cold-2\nexport\tread\twarm-1+cold-1\naudit\tread\tcold-1+cold-2\nportal\twrite\twarm-1\nmobile\twrite\twarm-1"],
  );
  step(
    "Two uploads of Tuesday 09:00 have no thumbnail, and `export` also mixes a warm and a cold store. I'll look at both before I say anything about them.",
    ["read_logs", { app: "thumbs", since: "14h", filter: "error" },
      ["th_5be01c77a9", "th_e0943aa21d"].flatMap((job, j) => Array.from({ length: 5 }, (_, i) => JSON.stringify({ ts: `2025-10-07T09:${String(12 + j * 9 + i).padStart(2, "0")}:0${i}.${random.int(100, 999)}Z`, level: i === 4 ? "error" : "warn", worker: random.int(1, 12), job, attempt: i + 1, msg: i === 4 ? "giving up: unsupported image" : "decode failed, trying again", detail: j === 0 ? "HEIC sequence with 0 frames" : "JPEG: premature end of data" }))).join("\n")],
    ["metrics_query", { expr: "histogram_quantile(0.99, gateway_ttfb{client=\"export\"})", range: "24h", step: "1h" },
      table(["hour", "p50 s", "p99 s", "requests"], Array.from({ length: 24 }, (_, h) => [`2025-10-07 ${String(h).padStart(2, "0")}:00`, `0.${random.int(10, 40)}`, `${h % 6 === 2 ? random.int(9, 14) : random.int(0, 1)}.${random.int(10, 99)}`, random.int(20, 400)]))],
  );
  say("Nothing was lost. All uploads of the two days have their thumbnails, except two whose files are broken themselves (a HEIC sequence without frames, a truncated JPEG); they would fail on any day. The `export` route has the same pattern: it reads from warm-1 and cold-1, and its 99th percentile jumps to 9 to 14 s. Nobody noticed because it runs at night. The same one-line change would help; I have not touched it.");
  user("Thanks. Last one, for the report: what was I not willing to spend, what were you not allowed to do, and what fixed it?");
  say("You were not willing to pay for more workers: the count had to stay at 12. I was not allowed to write in production or to restart anything; I only read. What fixed it was your change of one line at 21:48: the thumbs route reads from warm-1 and warm-2 instead of warm-1 and cold-2, since cold-2 does not have new originals yet.");
  return messages;
}
