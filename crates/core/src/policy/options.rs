//! Every option: its name, values, default, and what it does. Both readers check by this table, and the types with their
//! hover texts and `docs/presets.md` are made from it.

use super::presets::{Numbers, PRESETS};
use super::resolve::{ESTIMATORS, FALLBACKS, LONG_HISTORY, MIN_WINDOW, PIN_PROPOSALS, PREFIX_MISMATCH};
use super::row::{Documented, MAX, Number, Off, Row};
use super::rung::Rung;
use crate::checkpoint::{Mode, Tier};
use crate::wire::Format;
use crate::wire::provider::Kind;

/// What an option does. The engine that runs in a browser needs no texts.
macro_rules! doc {
    ($($line:literal)+) => {
        if cfg!(target_arch = "wasm32") { "" } else { concat!($($line),+) }
    };
}

/// Where the numbers of a preset have the default.
macro_rules! place {
    (keep.$field:ident) => {
        |numbers: &mut Numbers| numbers.keep.as_mut().map(|keep| &mut keep.$field as &mut dyn Number)
    };
    (restore.$field:ident) => {
        |numbers: &mut Numbers| numbers.restore.as_mut().map(|restore| &mut restore.$field as &mut dyn Number)
    };
    ($($field:ident).+) => {
        |numbers: &mut Numbers| Some(&mut numbers.$($field).+)
    };
}

/// The names of a list of choices.
macro_rules! names {
    ($list:expr) => {
        || $list.iter().map(|(name, _)| *name).collect()
    };
}

/// The names of an option in the original systems, each with what is off where that has a value of its own.
macro_rules! was {
    ($($name:literal $(= $off:expr)?),+) => {
        &[$(Documented { name: $name, off: was!(@ $($off)?) }),+]
    };
    (@) => { None };
    (@ $off:expr) => { Some($off) };
}

const OPENS: &str = "give it to openSession";
const STORED: &str = "it is about a session that was stored; give it to openSession";

/// What the original systems have beside the names of [`OPTIONS`]: options of `presetOptions` alone.
const ALONE: &str = "presetOptions";

/// The options. A group comes before its members.
#[rustfmt::skip]
pub static OPTIONS: &[Row] = &[
    Row::choice("preset", || PRESETS.iter().map(|preset| preset.name).collect()).default("`balanced`")
        .doc(doc!("When to compact, by which steps and with which numbers. See docs/presets.md.")),
    Row::group(ALONE)
        .doc(doc!("Options of the chosen preset by the names of the system it comes from. Each has a name of its own in the other "
            "options; giving both is an error.")),
    Row::choice("format", || Format::ALL.map(Format::as_str).to_vec()).default("detected from the messages")
        .doc(doc!("Whose messages they are.")),
    Row::text("model")
        .doc(doc!("The conversation's model. Without `contextWindow`, its window, its longest answer and its prices are looked up "
            "(`modelFacts`); a model that the catalog lacks is the error `unknown_model`. Tokens are estimated for its tokenizer.")),
    Row::range("contextWindow", MIN_WINDOW, MAX).default("that of `model`, else 200,000")
        .doc(doc!("The model's context window, in tokens.")),
    Row::count("maxOutputTokens", 0)
        .default("the model's longest answer up to 20,000, else 16,384; at most a quarter of the window")
        .doc(doc!("Tokens kept free for the model's answer. Preset `layered` keeps no more than `advanced.maxOutputReserve`.")),
    Row::count("reserveTokens", 0).default("0")
        .doc(doc!("More tokens to keep free, as for tools that the messages do not show.")),
    Row::named("prices", "Prices").default("those of `model` where the catalog has them")
        .doc(doc!("What the model's tokens cost, in USD per million. They decide when `economy` compacts, and plans report costs by them. "
            "Where none are known, `economy` assumes 3 for input, 15 for output, 0.30 to read the cache and 3.75 to write it.")),
    Row::number("prices.input", 0.0, 1e6).required().doc(doc!("Input tokens.")),
    Row::number("prices.output", 0.0, 1e6).required().doc(doc!("Output tokens.")),
    Row::number("prices.cacheRead", 0.0, 1e6).default("as `input`").doc(doc!("Input tokens read from the provider's cache.")),
    Row::number("prices.cacheWrite", 0.0, 1e6).default("as `input`").doc(doc!("Input tokens written to it.")),
    Row::count("prices.ttlMs", 0).default("300,000").doc(doc!("How long the provider's cache keeps an unused prompt, in ms.")),
    Row::value("prices.tiers", "ModelPrices[\"tiers\"]").doc(doc!("Prices of larger prompts.")),
    Row::function("tokenCounter", "(messages: Message[]) => number")
        .doc(doc!("Counts tokens exactly, in place of the estimate. It is called with one message at a time.")),
    Row::group("compactAt").default("the preset's, see docs/presets.md")
        .doc(doc!("When to compact: at this many tokens, or at this fraction of the window. One of the two.")),
    Row::count("compactAt.tokens", 1).was(was!["offload.offloadThreshold"]).doc(doc!("Tokens of the messages, the system prompt and the tools.")),
    Row::fraction("compactAt.fraction").doc(doc!("Of the window, 0..1.")),
    Row::flag("economy").default("true in `balanced` unless `compactAt` is given, else false")
        .doc(doc!("Compact as soon as the calls have paid as much for the larger context as a compaction costs, by `prices`; and at "
            "`compactAt`, or where the window ends, at the latest.")),
    Row::group("keep").default("5 messages; `factor3`: 3; `balanced`: 6,000 tokens")
        .doc(doc!("How many recent messages stay verbatim: one of `messages`, `tokens` and `fraction`. A tool call and its results are never split.")),
    Row::count("keep.messages", 1)
        .was(was!["offload.preserveCount", "layered.preserveCount", "factor3.preserveCount", "checkpoint.preserveCount"])
        .doc(doc!("This many messages.")),
    Row::count("keep.tokens", 1).doc(doc!("Messages of this many tokens.")),
    Row::number("keep.fraction", 0.0, 1.0).doc(doc!("Messages of this fraction of the history's tokens, 0..1.")),
    Row::count("keep.userMessages", 0).at(place!(checkpoint.keep_user_messages)).was(was!["checkpoint.keepUserMessages"])
        .doc(doc!("And the user's newest messages, wherever they are.")),
    Row::named("summarize", "SummarizeOptions").short("summarize.call").default("the built-in summarizer, which calls no model")
        .doc(doc!("Who writes summaries: your function, or `{ provider }`, an endpoint that is called for you. `\"extractive\"` is the built-in summarizer.")),
    Row::function("summarize.call", "Summarize").doc(doc!("Calls your model for a summary.")),
    Row::named("summarize.provider", "Provider").doc(doc!("An endpoint that is called in place of `call`.")),
    Row::choice("summarize.provider.kind", names!(Kind::ALL)).required().doc(doc!("Whose protocol it speaks. `openai` is Chat Completions, as many servers have it.")),
    Row::text("summarize.provider.model").required().doc(doc!("The model's name there.")),
    Row::text("summarize.provider.url").default("the provider's own")
        .doc(doc!("The endpoint, or a base that ends in `/v1` (`/v1beta` for `gemini`, `/api` for `ollama`).")),
    Row::value("summarize.provider.headers", "Record<string, string> | { entries(): Iterable<[string, string]> }")
        .doc(doc!("Headers of every request, the key among them, as in `{ authorization: \"Bearer …\" }`.")),
    Row::function("summarize.fetch", "typeof fetch").default("the global one").doc(doc!("Used for `provider`, and refused without it.")),
    Row::function("summarize.forResults", "Summarize").default("`call`").doc(doc!("A cheaper model for single tool results.")),
    Row::text("summarize.model").default("`model`").was(was!["offload.model"]).doc(doc!("The summarizer's model, if it is another one. Your function receives it as `request.model`.")),
    Row::range("summarize.contextWindow", MIN_WINDOW, MAX).default("`contextWindow`")
        .doc(doc!("The summarizer's window in tokens, if it is another one. No prompt, with room for its answer, is longer; a summary takes at most an "
            "eighth of it.")),
    Row::count("summarize.targetTokens", 1).at(place!(target_tokens)).scaled(200).of(Rung::Summarise)
        .was(was!["offload.targetTokens", "layered.targetTokens", "factor3.targetTokens"])
        .doc(doc!("Length of a summary, in tokens. In preset `checkpoint` the default is that of its level.")),
    Row::range("summarize.detail", 1, 3).default("in preset `checkpoint` by the tokens that it replaces; else none")
        .doc(doc!("How detailed a summary is: 1 is the shortest.")),
    Row::text("summarize.instructions").doc(doc!("More guidance for summaries.")),
    Row::choice("summarize.mode", names!(Mode::ALL)).default("`assistant`")
        .doc(doc!("What the app is used for, which decides what a summary must preserve. Presets other than `checkpoint` need `detail` with it.")),
    Row::choice("summarize.longHistory", names!(LONG_HISTORY)).default("`parts`")
        .doc(doc!("What to do when the history exceeds the summarizer's window. `parts` summarizes it in as few parts as fit, several at once, and merges "
            "them; each answer is stored as it comes. `clip` makes one call, with the longest texts shortened and messages in the middle left out.")),
    Row::choice("summarize.fallback", names!(FALLBACKS)).default("`none`")
        .doc(doc!("When every attempt failed: `none` leaves the history as it is and reports the error; `extractive` uses the built-in summarizer, and the "
            "result says why (`fellBack`).")),
    Row::range("summarize.attempts", 1, 100).at(place!(retry_count)).was(was!["offload.retryCount"])
        .doc(doc!("Attempts in total. Before the next one a provider's `Retry-After` is respected, up to a minute.")),
    Row::range("summarize.timeoutMs", 1, 86_400_000).default("120,000").doc(doc!("Of one attempt, in ms.")),
    Row::range("summarize.concurrency", 1, 100).default("4").doc(doc!("Calls of a model at once.")),
    Row::flag("background").default("false").sessions("only a session goes on meanwhile; give it to openSession")
        .doc(doc!("Do not wait for a summary while there is still room: it is made while the agent goes on, and the first `prepare` after it has it, with its "
            "`result`. Without room `prepare` waits.")),
    Row::group("pins").doc(doc!("Messages to keep verbatim.")),
    Row::function("pins.match", "(message: Message, index: number) => boolean")
        .doc(doc!("Which messages stay verbatim for ever; asked when a message is appended. If one would be summarized, it is quoted in full after the summary. "
            "Anything but `true` and `false`, such as a Promise, is refused.")),
    Row::choice("pins.proposals", names!(PIN_PROPOSALS)).default("`keep`")
        .doc(doc!("What to do with other messages of the user that state constraints, as \"never push to main\". `keep`: the constraints stay verbatim after every "
            "summary until `pins.reject(index)`, up to a tenth of the window, the newest first. `ask`: summaries are asked to repeat them. `off`: none are looked for. "
            "Event `pin` reports them.")),
    Row::group("redact").doc(doc!("What to hide from the summarizer. What is stored, what `recall.read` returns and the messages that stay are never changed.")),
    Row::flag("redact.secrets").default("true")
        .doc(doc!("Replace secrets, as `[redacted: aws-access-key 1]`; the same secret has the same placeholder in a session. Known are private keys (PEM, OpenSSH, PGP), "
            "keys of AWS, tokens of GitHub, Slack and npm, signed JSON web tokens, what follows `Bearer`, passwords in URLs, `sk-…` keys, live keys of Stripe and API "
            "keys of Google.")),
    Row::function("redact.text", "(text: string) => string").doc(doc!("Applied after that, for secrets that only you know.")),
    Row::group("digest").or_false().was(was!["factor3.verbosity" = Off::Choice(["debug", "normal"])])
        .doc(doc!("Reduce new results by the kind of their tool: the title, snippet and URL of a search, the outline of a file, some rows of a query, the key fields of "
            "a response. The whole result is stored, and a reference replaces it. Errors and small results stay. On in preset `factor3`.")),
    Row::group("digest.tools").was(was!["factor3.processTools"]).of(Rung::Process)
        .doc(doc!("The tools of each kind, in any letter case.")),
    Row::names("digest.tools.search").of(Rung::Process).default("web_search, search_web, search").doc(doc!("They search.")),
    Row::names("digest.tools.files").of(Rung::Process).default("read_file").doc(doc!("They read files.")),
    Row::names("digest.tools.queries").of(Rung::Process).default("query, sql, run_query, execute_sql, query_database").doc(doc!("They query a database.")),
    Row::names("digest.tools.apis").of(Rung::Process).default("fetch, http_request, api_request, call_api, api").doc(doc!("They call an API.")),
    Row::count("digest.minTokens", 0).at(place!(process.min_tokens)).was(was!["factor3.minTokens"]).of(Rung::Process)
        .doc(doc!("Results of fewer tokens stay as they are.")),
    Row::group("admit").or_false()
        .doc(doc!("Store large new results, and show the model a preview with a reference. On in presets `balanced` and `layered`.")),
    Row::count("admit.maxTokens", 1).at(place!(layered.large_output_tokens)).scaled(200).was(was!["layered.largeOutputTokens"]).of(Rung::Admit)
        .doc(doc!("Results of more tokens than this.")),
    Row::count("admit.previewChars", 0).at(place!(layered.preview_chars)).was(was!["layered.previewChars"]).of(Rung::Admit)
        .doc(doc!("Characters of the preview.")),
    Row::group("offload").or_false()
        .doc(doc!("Store old results, and put references in their place. On in presets `balanced` and `offload`.")),
    Row::count("offload.minChars", 1).at(place!(offload.min_chars)).was(was!["offload.minChars"]).of(Rung::Offload)
        .doc(doc!("Only results of more characters than this.")),
    Row::group("clear").or_false()
        .doc(doc!("Remove old results from the context; they stay stored. On in presets `balanced` and `layered`.")),
    Row::choice("clear.when", names!(super::numbers::CLEARS)).was(was!["layered.clear" = Off::Text("never")]).of(Rung::Clear)
        .default("`every-turn`; `balanced`: `break-even`")
        .doc(doc!("`every-turn`: at every `prepare`. `break-even`: in batches, once reading them from the provider's cache has cost more than writing anew what comes "
            "after the first of them.")),
    Row::names("clear.tools").was(was!["layered.compactableTools"]).of(Rung::Clear)
        .default("bash, read_file, write_file, edit_file; `balanced`: all")
        .doc(doc!("The tools whose results are cleared, in any letter case.")),
    Row::count("clear.keepRecent", 0).at(place!(layered.keep_recent)).was(was!["layered.keepRecent"]).of(Rung::Clear)
        .doc(doc!("Newest results of those tools that are never cleared.")),
    Row::count("clear.minTokens", 0).at(place!(layered.clear_min_tokens)).scaled(100).was(was!["layered.clearMinTokens"]).of(Rung::Clear)
        .doc(doc!("Only results of more tokens than this.")),
    Row::flag("clear.inputs").at(place!(layered.clear_inputs)).of(Rung::Clear)
        .doc(doc!("Clear the inputs of old calls too: their long texts are stored, and a reference with their length and first line replaces them. Calls that a "
            "provider has signed stay.")),
    Row::group("compress").or_false().of(Rung::Compress)
        .doc(doc!("Shorten results one by one. Of preset `react` alone.")),
    Row::count("compress.resultChars", 1).or_false().at(place!(react.single_result_threshold)).of(Rung::Compress)
        .was(was!["react.singleEnabled" = Off::Switch, "react.singleResultThreshold" = Off::Text("Infinity")])
        .doc(doc!("A result of more characters is shortened before it is ever sent; `false`: none is.")),
    Row::fraction("compress.atFraction").or_false().at(place!(react.global_compression_threshold)).of(Rung::Compress)
        .was(was!["react.globalEnabled" = Off::Switch, "react.globalCompressionThreshold"])
        .doc(doc!("Above this fraction of the window, 0..1, all results of some size are shortened; `false` or 1: none is.")),
    Row::count("compress.minChars", 0).at(place!(react.result_compression_min_size)).scaled(200).of(Rung::Compress)
        .was(was!["react.resultCompressionMinSize"])
        .doc(doc!("Of those, only results of more characters than this.")),
    Row::flag("compress.structured").at(place!(react.strategies)).was(was!["react.strategies"]).of(Rung::Compress)
        .doc(doc!("Shorten JSON, tables, logs, diffs and HTML by their structure, without a model; give results that later turns rely on twice the room; and adapt what "
            "is asked for to what was answered.")),
    Row::group("checkpoints").of(Rung::Age).doc(doc!("Summaries that stay as messages of their own, and grow shorter with age. Of preset `checkpoint` alone.")),
    Row::group("checkpoints.maxTokens").of(Rung::Age)
        .doc(doc!("The longest checkpoint of each level, in tokens, in a window of up to 32K; larger windows have longer ones in proportion.")),
    Row::count("checkpoints.maxTokens.compact", 1).at(place!(checkpoint.levels.compact)).was(was!["checkpoint.compactTokens"]).of(Rung::Age)
        .doc(doc!("Level 1.")),
    Row::count("checkpoints.maxTokens.moderate", 1).at(place!(checkpoint.levels.moderate)).was(was!["checkpoint.moderateTokens"]).of(Rung::Age)
        .doc(doc!("Level 2.")),
    Row::count("checkpoints.maxTokens.detailed", 1).at(place!(checkpoint.levels.detailed)).was(was!["checkpoint.detailedTokens"]).of(Rung::Age)
        .doc(doc!("Level 3.")),
    Row::count("checkpoints.promptTokens", 0).was(was!["checkpoint.promptBudget"]).of(Rung::Age)
        .default("by the window: 200 up to 4K, 500 up to 8K, 1,000 up to 16K, else 1,500")
        .doc(doc!("Tokens that the system prompt may take. What it leaves is for the checkpoints: above that they are shortened and merged before their time. For them "
            "the default grows in proportion with windows above 32K.")),
    Row::count("checkpoints.mergeCount", 2).at(place!(checkpoint.merge_count)).was(was!["checkpoint.mergeCount"]).of(Rung::Age)
        .doc(doc!("This many old checkpoints of level 1 are merged into one.")),
    Row::group("restoreFiles").or_false().doc(doc!("Put the files that were read last back after a summary. On in preset `layered`.")),
    Row::function("restoreFiles.read", "(path: string) => Promise<string>").default("what the model read")
        .doc(doc!("Reads a file as it is now. Where it fails, what the model read is put back.")),
    Row::names("restoreFiles.tools").was(was!["layered.readTools"]).default("read_file").doc(doc!("The tools that read a file, in any letter case.")),
    Row::range("restoreFiles.maxFiles", 0, 1_000).at(place!(restore.max_files)).was(was!["layered.maxRestoreFiles"])
        .doc(doc!("Files at most.")),
    Row::count("restoreFiles.maxTokensPerFile", 1).at(place!(restore.max_tokens_per_file)).scaled(100).was(was!["layered.maxRestoreTokensPerFile"])
        .doc(doc!("Tokens of one file; longer ones are cut at the end.")),
    Row::count("restoreFiles.maxTokens", 1).at(place!(restore.max_tokens_total)).scaled(100).was(was!["layered.maxRestoreTokensTotal"])
        .doc(doc!("Tokens of all of them.")),
    Row::group("limits").sessions("compact and planCompaction call no store; give it to openSession").doc(doc!("What a call may take at most.")),
    Row::range("limits.storeTimeoutMs", 1, u32::MAX as usize).sessions(OPENS).default("30,000")
        .doc(doc!("How long one call of the store may take, in ms. A call that is not answered in time fails: with `store_unavailable` if nothing was written, with "
            "`indeterminate` if that is unknown. A late answer is ignored, and the next call reads what is stored. `indexedDbStore` gives up after 10 s.")),
    Row::value("goal", "Goal")
        .doc(doc!("What the conversation is for; it guides summaries. A session that already has this goal keeps the progress it has made.")),
    Row::host("signal", "AbortSignal").doc(doc!("Ends a compaction; what was appended stays.")),
    Row::function("onProgress", "(progress: Progress) => void").doc(doc!("Called as a compaction advances.")),
    Row::function("logger", "(level: LogLevel, message: string) => void").doc(doc!("Receives log lines, and warnings that would go to `console.warn`.")),
    Row::named("advanced", "AdvancedOptions").doc(doc!("Options that are rarely needed.")),
    Row::choice("advanced.estimator", names!(ESTIMATORS)).default("`calibrated`")
        .doc(doc!("`calibrated` is fitted to real tokenizers; `chars4` is `round(characters / 4)`.")),
    Row::choice("advanced.prefixMismatchBehavior", names!(PREFIX_MISMATCH)).default("`error`")
        .doc(doc!("What your requests to Anthropic send as `thinking.block_binding.prefix_mismatch_behavior`. `error`: signed thinking after an edit is removed. `drop_block`: "
            "it is left for the server to drop, so that the cached prefix stays the same.")),
    Row::host("advanced.runtime", "{ now(): number; id(): string }").default("the clock and random ids")
        .doc(doc!("Clock (ms) and source of ids (any unique string), for reproducible runs.")),
    Row::host("advanced.watermark", "Watermark").sessions("compact and planCompaction store nothing; give it to openSession")
        .default("`localStorage` for a store in IndexedDB, else none")
        .doc(doc!("Where to record the session's progress outside the store, so that a database that the platform removed or set back is noticed (event `data-loss`). One "
            "for each store. If it fails, a `warning` says so once.")),
    Row::count("advanced.maxOutputReserve", 0).was(was!["layered.outputReserve"]).default("20,000")
        .doc(doc!("Preset `layered`: the most tokens that are kept free for an answer.")),
    Row::count("advanced.promptReserve", 0).was(was!["layered.fixedReserve"]).default("13,000")
        .doc(doc!("Preset `layered`: tokens of system prompt and tools that do not count.")),
    Row::count("advanced.minSavings", 0).at(place!(min_savings)).scaled(0).was(was!["layered.minSavings"]).of(Rung::Summarise)
        .doc(doc!("No summary if it could replace fewer tokens than this.")),
    Row::count("advanced.minOffloadGain", 1).at(place!(compact_trigger_threshold)).scaled(100).was(was!["offload.compactTriggerThreshold"]).of(Rung::Summarise)
        .doc(doc!("Summarize if the cheaper steps freed fewer tokens than this.")),
    Row::count("advanced.cooldownSteps", 0).at(place!(compact_cooldown_steps)).was(was!["offload.compactCooldownSteps"]).of(Rung::Summarise)
        .doc(doc!("Calls of `prepare` between two attempts to summarize.")),
    Row::group("advanced.offload").doc(doc!("Of `offload`.")),
    Row::number("advanced.offload.scanFraction", 0.0, 1.0).at(place!(offload.scan_ratio)).was(was!["offload.scanRatio"]).of(Rung::Offload)
        .doc(doc!("Fraction of the messages that is searched for results, 0..1, oldest first.")),
    Row::fraction("advanced.emergencyFraction").at(place!(emergency_share)).was(was!["factor3.emergencyShare"]).of(Rung::Rollover)
        .doc(doc!("Fraction of the window from which recent messages are summarized too, with a warning, 0..1.")),
    Row::range("advanced.maxSnapshots", 1, MAX_SNAPSHOTS).at(place!(checkpoint.keep_snapshots)).was(was!["checkpoint.keepSnapshots"])
        .doc(doc!("The newest snapshots that a session keeps.")),
    Row::group("advanced.digest").of(Rung::Process).doc(doc!("Of `digest`.")),
    Row::count("advanced.digest.structuredMinTokens", 0).at(place!(process.structured_min_tokens)).was(was!["factor3.structuredMinTokens"]).of(Rung::Process)
        .doc(doc!("JSON and YAML of fewer tokens stay as they are.")),
    Row::count("advanced.digest.snippetChars", 1).at(place!(process.snippet_chars)).was(was!["factor3.snippetChars"]).of(Rung::Process)
        .doc(doc!("Characters of a search snippet.")),
    Row::count("advanced.digest.fileLines", 1).at(place!(process.file_lines)).was(was!["factor3.fileLines"]).of(Rung::Process)
        .doc(doc!("A file of more lines becomes its outline.")),
    Row::count("advanced.digest.outlineLines", 1).at(place!(process.outline_lines)).was(was!["factor3.outlineLines"]).of(Rung::Process)
        .doc(doc!("Lines of an outline at most.")),
    Row::count("advanced.digest.queryRows", 1).at(place!(process.query_rows)).was(was!["factor3.queryRows"]).of(Rung::Process)
        .doc(doc!("An answer of more rows becomes a sample of them.")),
    Row::count("advanced.digest.sampleRows", 1).at(place!(process.sample_rows)).was(was!["factor3.sampleRows"]).of(Rung::Process)
        .doc(doc!("Rows of a sample.")),
    Row::count("advanced.digest.apiChars", 100).at(place!(process.api_chars)).was(was!["factor3.apiChars"]).of(Rung::Process)
        .doc(doc!("Characters of a response's fields at most.")),
    Row::group("advanced.compress").of(Rung::Compress).doc(doc!("Of `compress`.")),
    Row::count("advanced.compress.chunkChars", 1).at(place!(react.chunk_size)).was(was!["react.chunkSize"]).of(Rung::Compress)
        .doc(doc!("Characters of a chunk.")),
    Row::fraction("advanced.compress.chunkFraction").at(place!(react.chunk_ratio)).was(was!["react.chunkRatio"]).of(Rung::Compress)
        .doc(doc!("Fraction that a chunk is shortened to, 0..1.")),
    Row::fraction("advanced.compress.secondFraction").at(place!(react.second_ratio)).was(was!["react.secondRatio"]).of(Rung::Compress)
        .doc(doc!("Fraction that the joined chunks are shortened to if they are still too large, 0..1.")),
    Row::fraction("advanced.compress.fraction").at(place!(react.global_ratio)).was(was!["react.globalRatio"]).of(Rung::Compress)
        .doc(doc!("Fraction that each result is shortened to above `compress.atFraction`, 0..1.")),
    Row::fraction("advanced.compress.referencedFraction").at(place!(react.reliance_ratio)).was(was!["react.relianceRatio"]).of(Rung::Compress)
        .doc(doc!("The most that a result which later turns rely on is shortened to, 0..1.")),
    Row::group("advanced.checkpoints").of(Rung::Age).doc(doc!("Of `checkpoints`.")),
    Row::fraction("advanced.checkpoints.triggerFraction").at(place!(checkpoint.trigger_share)).was(was!["checkpoint.triggerShare"]).of(Rung::Age)
        .doc(doc!("A session compacts above this fraction of what the system prompt and the answer leave of the window, 0..1.")),
    Row::count("advanced.checkpoints.level1Above", 1).at(place!(checkpoint.levels.compact_above)).was(was!["checkpoint.compactAbove"]).of(Rung::Age)
        .doc(doc!("More tokens than this become a checkpoint of level 1, the shortest.")),
    Row::count("advanced.checkpoints.level2Above", 1).at(place!(checkpoint.levels.moderate_above)).was(was!["checkpoint.moderateAbove"]).of(Rung::Age)
        .doc(doc!("More tokens than this become one of level 2, fewer one of level 3.")),
    Row::count("advanced.checkpoints.level2Age", 1).at(place!(checkpoint.age_moderate)).was(was!["checkpoint.ageModerate"]).of(Rung::Age)
        .doc(doc!("After this many more compactions a checkpoint is shortened to level 2.")),
    Row::count("advanced.checkpoints.level1Age", 1).at(place!(checkpoint.age_compact)).was(was!["checkpoint.ageCompact"]).of(Rung::Age)
        .doc(doc!("After this many, to level 1.")),
    Row::group("advanced.carry").doc(doc!("What preset `balanced` keeps beside a summary.")),
    Row::fraction("advanced.carry.verbatimFraction").at(place!(keep.must_share))
        .doc(doc!("Pins, constraints and the user's newest messages stay verbatim in this fraction of what the summary replaces, 0..1,")),
    Row::count("advanced.carry.verbatimTokens", 0).at(place!(keep.must_tokens)).scaled(100).doc(doc!("or in this many tokens, whichever is more.")),
    Row::fraction("advanced.carry.factsFraction").at(place!(keep.share))
        .doc(doc!("Files, open errors and tasks, and evidence take this fraction of it, 0..1,")),
    Row::count("advanced.carry.factsMinTokens", 0).at(place!(keep.least_tokens)).scaled(100).doc(doc!("no fewer tokens than this,")),
    Row::count("advanced.carry.factsMaxTokens", 0).at(place!(keep.most_tokens)).scaled(200).doc(doc!("and no more than this.")),
    Row::count("advanced.retryWaitMs", 0).at(place!(retry_wait_ms))
        .doc(doc!("Wait before the next attempt at a summary, in ms, times the number of the attempt.")),
    Row::host("id", "string").sessions("compact and planCompaction keep nothing; a session of this id is opened with openSession").default("a new one")
        .doc(doc!("Your name for the session.")),
    Row::host("store", "Store | \"memory\" | \"indexeddb\"").sessions("compact and planCompaction store nothing; give it to openSession")
        .default("`indexeddb` in browsers; elsewhere memory, but for a session with an `id` there is none")
        .doc(doc!("Where the session is stored: `indexedDbStore`, `fileStore`, `durableObjectStore`, a `Store` of your own, or `memory`, where sessions of one `id` are one as "
            "long as the process lives. In a browser that may store nothing, `indexeddb` gives a session in memory with a `warning`, and `archive.durability` is `none`; a "
            "store that you pass rejects with `store_unavailable` instead.")),
    Row::host("systemPrompt", "string | (() => string)").sessions("count it in reserveTokens, or give it to openSession")
        .doc(doc!("The system prompt, which counts. A function is asked at every `prepare`.")),
    Row::text("parent").open("a session that is imported has the parent that it had; to begin one from a parent, use openSession")
        .doc(doc!("The `id` of the session that this new, empty one is begun from, as for a sub-agent.")),
    Row::flag("acceptDataLoss").open(STORED).default("false")
        .doc(doc!("If the session that was stored under `id` is gone, begin it anew. Without this, that is the error `data_loss`.")),
    Row::flag("mustExist").open(STORED).default("false")
        .doc(doc!("If the store has no session called `id`, throw `data_loss` and begin nothing: so a session that the browser removed with all other data does not look new.")),
    Row::choice("presetOptions.tier", names!(Tier::ALL)).was(was!["checkpoint.tier"]).of(Rung::Age).default("by `contextWindow`")
        .doc(doc!("Size of the window, which decides `promptBudget`.")),
    Row::count("presetOptions.safetyMargin", 0).was(was!["checkpoint.safetyMargin"]).of(Rung::Age).default("1,000, at most a quarter of the window")
        .doc(doc!("Tokens kept free for the answer where `maxOutputTokens` is not given.")),
    Row::value("presetOptions.profiles", "ModelProfile[]").was(was!["checkpoint.profiles"]).of(Rung::Age)
        .doc(doc!("What models can be run with. The window is then the limit of `model` at a size of `contextWindow`; one that is not listed is an error.")),
    Row::count("presetOptions.modelContextLimit", 1).was(was!["react.modelContextLimit"]).of(Rung::Compress).default("the window, in tokens")
        .doc(doc!("The limit in characters.")),
    Row::count("presetOptions.systemPromptLength", 0).at(place!(react.system_prompt_length)).scaled(0).was(was!["react.systemPromptLength"]).of(Rung::Compress)
        .doc(doc!("What the system prompt takes of `modelContextLimit`.")),
    Row::count("presetOptions.instructionLength", 0).at(place!(react.instruction_length)).scaled(0).was(was!["react.instructionLength"]).of(Rung::Compress)
        .doc(doc!("What the instructions take of `modelContextLimit`.")),
];

/// The session's row, which every commit writes, names them all.
const MAX_SNAPSHOTS: usize = 100;
