import { transcripts } from "../tests/support/transcripts.mjs";
import { engine, replay, simple } from "./front/replay.mjs";
const V = JSON.parse(process.argv[2]); const from = +(process.argv[3] ?? 0), to = +(process.argv[4] ?? 6);
const long = ["full/anthropic/claude_code_entire_cli", "full/anthropic/claude_code_entirecontext"].flatMap((n) => transcripts(n) ?? []).map(({ messages }) => messages).filter((m) => JSON.stringify(m).length > 400000).filter((_, i) => i % 2 === from).slice(0, to);
const T = (f, k) => f.reduce((s, o) => s + o[k], 0);
const base = []; for (const m of long) base.push(await replay(m, simple(async (x) => x), 200_000));
for (const o of V) { const f = []; for (const m of long) f.push(await replay(m, engine(o), 200_000)); console.log(JSON.stringify(o), "needs", (100 * T(f, "lost") / T(f, "calls")).toFixed(2), "cost", (T(f, "cost") / T(base, "cost")).toFixed(3)); }
