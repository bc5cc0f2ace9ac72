//! Every option: its name, values, default, and what it does. Both readers check by this table, and the types with their
//! hover texts and `docs/presets.md` are made from it.

use super::limits::ON_EXCEED;
use super::presets::{Numbers, PRESETS};
use super::resolve::{
    ESTIMATORS, FALLBACKS, LONG_HISTORY, MIN_WINDOW, ON_DIVERGED, PIN_PROPOSALS, PREFIX_MISMATCH,
    RECALL_SCOPES, STATE_WHEN,
};
use super::row::{Documented, MAX, Number, Off, Row};
use super::rung::Rung;
use crate::checkpoint::{Mode, Tier};
use crate::wire::Format;
use crate::wire::provider::Kind;

/// What an option does.
macro_rules! doc {
    ($($line:literal)+) => {
        concat!($($line),+)
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

const CARRIES: &str = "a session keeps its state itself; give it to compact";

/// What the original systems have beside the names of [`OPTIONS`]: options of `presetOptions` alone.
const ALONE: &str = "presetOptions";

/// The options. A group comes before its members.
#[rustfmt::skip]
pub static OPTIONS: &[Row] = &[
    Row::choice("preset", || PRESETS.iter().map(|preset| preset.name).collect()).default("`balanced`")
        .doc(doc!("The strategy of compaction: which steps it takes, when, and with which numbers. docs/presets.md of the repository lists all "
            "numbers.")),
    Row::group(ALONE)
        .doc(doc!("Options of the chosen preset by the names of the system it comes from. Each also has its own name among the other options; "
            "giving both is `invalid_option`.")),
    Row::choice("format", || Format::ALL.map(Format::as_str).to_vec()).default("detected from the messages")
        .doc(doc!("The format of the messages.")),
    Row::text("model")
        .doc(doc!("The conversation's model. Without `contextWindow`, its window, longest answer and prices come from the catalog (`modelFacts`); a "
            "name that is not there is the error `unknown_model`. Tokens are estimated for its tokenizer.")),
    Row::range("contextWindow", MIN_WINDOW, MAX).default("that of `model`, else 200,000")
        .doc(doc!("The model's context window, in tokens. At least 1,000.")),
    Row::count("maxOutputTokens", 0)
        .default("the model's longest answer up to 20,000, else 16,384; at most a quarter of the window")
        .doc(doc!("Tokens kept free for the model's answer. Preset `layered` keeps at most `advanced.maxOutputReserve`.")),
    Row::count("reserveTokens", 0).default("0")
        .doc(doc!("More tokens to keep free, for example for tools that are not passed to `prepare`.")),
    Row::named("prices", "Prices").default("those of `model` where the catalog has them")
        .doc(doc!("Prices of the model, in USD per million tokens. Option `economy` compacts by them, and plans report costs. If none are known, "
            "`economy` assumes 3 for input, 15 for output, 0.30 for cache reads and 3.75 for cache writes.")),
    Row::number("prices.input", 0.0, 1e6).required().doc(doc!("Input tokens, in USD per million.")),
    Row::number("prices.output", 0.0, 1e6).required().doc(doc!("Output tokens, in USD per million.")),
    Row::number("prices.cacheRead", 0.0, 1e6).default("as `input`").doc(doc!("Input tokens read from the provider's cache, in USD per million.")),
    Row::number("prices.cacheWrite", 0.0, 1e6).default("as `input`").doc(doc!("Input tokens written to the provider's cache, in USD per million.")),
    Row::count("prices.ttlMs", 0).default("300,000").doc(doc!("How long the provider's cache keeps an unused prompt, in ms.")),
    Row::value("prices.tiers", "ModelPrices[\"tiers\"]").doc(doc!("Prices of larger prompts, in USD per million tokens.")),
    Row::function("tokenCounter", "(messages: Message[]) => number")
        .doc(doc!("Counts tokens exactly, in place of the estimate. Called with one message at a time; returns a whole number of tokens. \
            `countMessages` of `loadTokenizer` is such a function.")),
    Row::group("compactAt").default("`balanced`: 75 % of the window up to 128,000 tokens, 96,000 tokens up to 192,000, half of it above; at most \
        90 % of what is left after the answer; other presets: see docs/presets.md")
        .doc(doc!("When to compact: at this many tokens, or at this fraction of the window. Give one of the two.")),
    Row::count("compactAt.tokens", 1).was(was!["offload.offloadThreshold"])
        .doc(doc!("Compact when messages, system prompt and tools reach this many tokens.")),
    Row::fraction("compactAt.fraction").doc(doc!("Compact when messages, system prompt and tools reach this fraction of the window, 0..1.")),
    Row::flag("economy").default("false")
        .doc(doc!("Spend least: compact as soon as sending the larger context has cost as much as a compaction would, by `prices`, from a quarter of "
            "the window and 16,000 tokens on; at the latest at `compactAt`. More of what the work needs later leaves the context. A summary's "
            "request counts as it is sent: in full, also that of your own function, or mostly as cache reads (`summarize.provider.request`). Where "
            "`prices.input` is 0, `compactAt` alone decides.")),
    Row::group("recall").short("recall.tools").sessions("only a session stores what leaves the context; give it to openSession")
        .doc(doc!("Reading and searching what left the context. `true` or `false` is `tools`.")),
    Row::flag("recall.tools").default("true once a `prepare` had `session.recall.tools()` among its `tools`")
        .doc(doc!("The model can read what left the context. In preset `balanced` results then leave as soon as that pays; otherwise not below half "
            "of `compactAt`.")),
    Row::function("recall.embed", "(texts: string[]) => Promise<number[][]>").default("searches are by words alone")
        .doc(doc!("Turns texts into vectors, so that searches find by meaning too. Resolves to one vector for each text, in their order, all of one \
            length (at most 8,192 numbers). A call has at most 64 texts of up to 1,000 bytes. A search calls it for the query and for messages that \
            have no vectors yet, and stores the vectors in the session's store. If it rejects, takes longer than 30 seconds or resolves to anything \
            else, a `warning` event says why, and words alone decide.")),
    Row::choice("recall.scope", names!(RECALL_SCOPES)).default("`session`")
        .doc(doc!("What `session.recall.search` and the model's tool `recall_search` search. `session`: this session. `all`: all sessions of its \
            store, by their words; `session.recall.read` and `recall_read` then read what was found. The store is the boundary: with `all`, this \
            model and whoever talks to it can read every session in the store, so use it only for a store of one user. Other sessions are only \
            read. One that cannot be read is left out, with a `warning` event.")),
    Row::group("keep").default("5 messages; `factor3`: 3; `balanced`: what makes the prompt 30 % of the window")
        .doc(doc!("How many recent messages stay verbatim: one of `messages`, `tokens` and `fraction`. A tool call is never separated from its "
            "results.")),
    Row::count("keep.messages", 1)
        .was(was!["offload.preserveCount", "layered.preserveCount", "factor3.preserveCount", "checkpoint.preserveCount"])
        .doc(doc!("Keep this many recent messages.")),
    Row::count("keep.tokens", 1).doc(doc!("Keep recent messages of this many tokens.")),
    Row::number("keep.fraction", 0.0, 1.0).doc(doc!("Keep recent messages of this fraction of the history's tokens, 0..1.")),
    Row::count("keep.userMessages", 0).at(place!(checkpoint.keep_user_messages)).was(was!["checkpoint.keepUserMessages"])
        .doc(doc!("Also keep this many of the user's newest messages verbatim, wherever they are in the history.")),
    Row::named("summarize", "SummarizeOptions").short("summarize.call").default("the built-in summarizer, which calls no model")
        .doc(doc!("How summaries are written: by your function, by an endpoint (`{ provider }`), by the provider of the conversation in the "
            "course of your own requests (`\"server\"`; formats `anthropic` and `openai-responses`: add the fields of `prepare().request` to each "
            "request), or without a model by the built-in summarizer (`\"extractive\"`).")),
    Row::function("summarize.call", "Summarize").doc(doc!("Calls your model for a summary.")),
    Row::named("summarize.provider", "Provider").doc(doc!("An endpoint that is called for summaries, in place of `call`.")),
    Row::choice("summarize.provider.kind", names!(Kind::ALL)).required()
        .doc(doc!("The protocol of the endpoint. `openai` is Chat Completions, which many servers speak.")),
    Row::text("summarize.provider.model").required().doc(doc!("The model's name at this endpoint.")),
    Row::text("summarize.provider.url").default("the provider's own")
        .doc(doc!("The address of the endpoint, or a base that ends in `/v1` (`/v1beta` for `gemini`, `/api` for `ollama`).")),
    Row::value("summarize.provider.headers", "Record<string, string> | { entries(): Iterable<[string, string]> }")
        .doc(doc!("Headers of every request, the API key included: `{ authorization: \"Bearer …\" }`.")),
    Row::value("summarize.provider.request", "Record<string, unknown>")
        .doc(doc!("Says that the conversation itself runs at this endpoint, and what its requests have besides the messages, exactly as you send "
            "it: `tool_choice`, `thinking` and the like, or `{}`. A summary is then asked for at the end of the prompt that `prepare` returned "
            "last, which the provider reads from its cache, and not in a new prompt. `systemPrompt` and the `tools` of that `prepare` go with it, "
            "unless they are among these fields. A new prompt is sent all the same where `model` is not the model of this endpoint, the prompt holds "
            "a secret (`redact.secrets`), `redact.text` is given, the messages are not in the format of `kind` (`ollama` has none), "
            "the prompt was changed since, it leaves no room for the answer, `tool_choice` forces a call, or the model answered with a call.")),
    Row::function("summarize.fetch", "typeof fetch").default("the global one")
        .doc(doc!("The `fetch` that calls `provider`; `invalid_option` without it.")),
    Row::function("summarize.forResults", "Summarize").default("`call`").doc(doc!("Calls a cheaper model for summaries of single tool results.")),
    Row::text("summarize.model").default("`model`").was(was!["offload.model"])
        .doc(doc!("The summarizer's model, if it differs from the conversation's. Your function receives it as `request.model`.")),
    Row::range("summarize.contextWindow", MIN_WINDOW, MAX).default("`contextWindow`")
        .doc(doc!("The summarizer's context window in tokens, if it differs from the conversation's. A prompt and its answer fit it; a summary "
            "takes at most an eighth of it.")),
    Row::count("summarize.targetTokens", 1).at(place!(target_tokens)).scaled(200).of(Rung::Summarise)
        .was(was!["offload.targetTokens", "layered.targetTokens", "factor3.targetTokens"])
        .doc(doc!("Length of a summary, in tokens. In preset `checkpoint` the default depends on its level. In `balanced`, a summary that a model "
            "writes takes by default an eighth of what it replaces, from this number up to twice as much. The answer may be a fifth longer.")),
    Row::range("summarize.detail", 1, 3).default("in preset `checkpoint` by the tokens that it replaces; else none")
        .doc(doc!("How detailed a summary is: 1 compact, 2 moderate, 3 detailed.")),
    Row::text("summarize.instructions").doc(doc!("More guidance for the summarizer, added to its prompt.")),
    Row::choice("summarize.mode", names!(Mode::ALL)).default("`assistant`")
        .doc(doc!("The kind of work, which decides what a summary must preserve. In presets other than `checkpoint` only together with `detail`.")),
    Row::choice("summarize.longHistory", names!(LONG_HISTORY)).default("`parts`")
        .doc(doc!("What to do when the history exceeds the summarizer's window. `parts`: summarize it in as few parts as fit, several at once, and "
            "merge the answers; each is stored as it arrives. `clip`: make one call, with the longest texts shortened and messages in the "
            "middle left out.")),
    Row::choice("summarize.fallback", names!(FALLBACKS)).default("`none`; `balanced`: `extractive` where `prepare` could return nothing that fits")
        .doc(doc!("What to do when every attempt failed. `none`: leave the history as it is and report the error. `extractive`: use the built-in "
            "summarizer; the result has the error in `fellBack`.")),
    Row::range("summarize.attempts", 1, 100).at(place!(retry_count)).was(was!["offload.retryCount"])
        .doc(doc!("Attempts at a summary, the first included. Before the next one a provider's `Retry-After` is respected, up to a minute.")),
    Row::range("summarize.timeoutMs", 1, 86_400_000).default("120,000")
        .doc(doc!("Time limit of one attempt at a summary, in ms. Then it fails with `timeout`.")),
    Row::range("summarize.concurrency", 1, 100).default("4").doc(doc!("Calls of a model at the same time.")),
    Row::flag("background").default("true in `balanced`, else false").sessions("only a session goes on meanwhile; give it to openSession")
        .doc(doc!("Write summaries while the agent continues: as long as there is room, `prepare` returns the context as it is (`pending`), and the "
            "first `prepare` after the summary has it in `result`. Without room `prepare` waits.")),
    Row::group("pins").doc(doc!("Messages to keep verbatim.")),
    Row::function("pins.match", "(message: Message, index: number) => boolean")
        .doc(doc!("Selects messages to keep verbatim forever, their tool results included. A selected message that would be summarized is quoted in "
            "full after the summary. Called once for each appended message. Must return `true` or `false`; anything else, such as a Promise, is "
            "refused.")),
    Row::choice("pins.proposals", names!(PIN_PROPOSALS)).default("`keep`")
        .doc(doc!("What to do with other messages of the user that state constraints, such as \"never push to main\"; event `pin` reports them. "
            "`keep`: quote the constraints after every summary until `pins.reject(index)`, newest first, up to a tenth of the window. `ask`: "
            "ask the summarizer to repeat them. `off`: do not look for any.")),
    Row::group("redact")
        .doc(doc!("Text to hide from the summarizer. Stored messages, `recall.read` and messages that stay in the context are never changed.")),
    Row::flag("redact.secrets").default("true")
        .doc(doc!("Replace secrets by placeholders such as `[redacted: aws-access-key 1]`; in one session the same secret has the same placeholder. "
            "Recognized are private keys (PEM, OpenSSH, PGP), keys of AWS, tokens of GitHub, Slack and npm, signed JSON web tokens, what "
            "follows `Bearer`, passwords in URLs, `sk-…` keys, live keys of Stripe, API keys of Google, and more.")),
    Row::function("redact.text", "(text: string) => string")
        .doc(doc!("Redacts more, after `secrets`: receives each text and returns it without what only you know to be secret.")),
    Row::group("digest").or_false().was(was!["factor3.verbosity" = Off::Choice(["debug", "normal"])])
        .doc(doc!("Reduce new results by the kind of their tool: the title, snippet and URL of a search; the outline of a file; some rows of a "
            "query; the key fields of a response. The whole result is stored, with a reference in its place. Errors and small results stay. "
            "`false`: off. On in preset `factor3`.")),
    Row::group("digest.tools").was(was!["factor3.processTools"]).of(Rung::Process)
        .doc(doc!("Names of the tools of each kind, in any letter case.")),
    Row::names("digest.tools.search").of(Rung::Process).default("web_search, search_web, search").doc(doc!("Tools that search.")),
    Row::names("digest.tools.files").of(Rung::Process).default("read_file").doc(doc!("Tools that read files.")),
    Row::names("digest.tools.queries").of(Rung::Process).default("query, sql, run_query, execute_sql, query_database")
        .doc(doc!("Tools that query a database.")),
    Row::names("digest.tools.apis").of(Rung::Process).default("fetch, http_request, api_request, call_api, api").doc(doc!("Tools that call an API.")),
    Row::count("digest.minTokens", 0).at(place!(process.min_tokens)).was(was!["factor3.minTokens"]).of(Rung::Process)
        .doc(doc!("Results of fewer tokens are not reduced.")),
    Row::value("toolPolicies", "Record<string, ToolPolicy>")
        .doc(doc!("How to treat the results of single tools, by the tool's name in any letter case. `keep: \"always\"`: results that are appended \
            while this is set stay verbatim, as pinned messages do. `\"newest\"`: the tool's older results leave first. `\"disposable\"`: all of its \
            results leave first, once the model has answered them. `maxTokens`: in place of `admit.maxTokens`. `digest` (`\"search\"`, `\"file\"`, \
            `\"query\"`, `\"api\"`): results of the tool become this digest, whatever `digest.tools` says; `false`: they become none.")),
    Row::group("admit").or_false()
        .doc(doc!("Store large new results, and show the model a preview with a reference. `false`: off. On in presets `balanced` and `layered`.")),
    Row::count("admit.maxTokens", 1).at(place!(layered.large_output_tokens)).scaled(200).was(was!["layered.largeOutputTokens"]).of(Rung::Admit)
        .doc(doc!("Only results of more tokens than this are stored.")),
    Row::count("admit.previewChars", 0).at(place!(layered.preview_chars)).was(was!["layered.previewChars"]).of(Rung::Admit)
        .doc(doc!("Length of the preview, in characters; at most half of the result.")),
    Row::flag("admit.rereads").default("true in `balanced`, else false").of(Rung::Admit).sessions("only a session keeps whole what is told as a difference; give it to openSession")
        .doc(doc!("Send a new tool result as a unified diff against an earlier result of the same call that is still in the context, or as \
            \"unchanged\", if that takes at most 60 % of its tokens; and one of another call without the lines that an earlier result shows, in \
            stretches of eight or more, if that saves 60 tokens. The store keeps all of it. When the earlier result leaves the context, the \
            newest one that depends on it is sent whole again.")),
    Row::group("offload").or_false()
        .doc(doc!("Store old results, with references in their place. `false`: off. On in presets `balanced` and `offload`.")),
    Row::count("offload.minChars", 1).at(place!(offload.min_chars)).was(was!["offload.minChars"]).of(Rung::Offload)
        .doc(doc!("Only results of more characters than this are stored.")),
    Row::group("clear").or_false()
        .doc(doc!("Remove old results from the context; their texts stay stored. `false`: off. On in presets `balanced` and `layered`.")),
    Row::choice("clear.when", names!(super::numbers::CLEARS)).was(was!["layered.clear" = Off::Text("never")]).of(Rung::Clear)
        .default("`every-turn`; `balanced`: `break-even`")
        .doc(doc!("When old results are removed. `every-turn`: at every `prepare`. `break-even`: in batches, once reading them from the provider's "
            "cache has cost as much as rewriting the cache after them would.")),
    Row::names("clear.tools").was(was!["layered.compactableTools"]).of(Rung::Clear)
        .default("bash, read_file, write_file, edit_file; `balanced`: all")
        .doc(doc!("The tools whose results are removed, in any letter case.")),
    Row::count("clear.keepRecent", 0).at(place!(layered.keep_recent)).was(was!["layered.keepRecent"]).of(Rung::Clear)
        .default("3; `balanced`: 16 in a window of 200,000 tokens, in others in proportion, at least 3; with `economy` 3")
        .doc(doc!("How many of the newest results of these tools are never removed.")),
    Row::count("clear.minTokens", 0).at(place!(layered.clear_min_tokens)).scaled(100).was(was!["layered.clearMinTokens"]).of(Rung::Clear)
        .doc(doc!("Only results of more tokens than this are removed.")),
    Row::flag("clear.inputs").at(place!(layered.clear_inputs)).of(Rung::Clear)
        .doc(doc!("Also shorten the inputs of old calls: their long texts are stored, with a reference, their length and their first line in their "
            "place. Calls that a provider has signed stay.")),
    Row::group("compress").or_false().of(Rung::Compress)
        .doc(doc!("Shorten large results one by one, with or without a model. `false`: off. Only in preset `react`.")),
    Row::count("compress.resultChars", 1).or_false().at(place!(react.single_result_threshold)).of(Rung::Compress)
        .was(was!["react.singleEnabled" = Off::Switch, "react.singleResultThreshold" = Off::Text("Infinity")])
        .doc(doc!("A new result of more characters than this is shortened before it is sent. `false`: none is.")),
    Row::fraction("compress.atFraction").or_false().at(place!(react.global_compression_threshold)).of(Rung::Compress)
        .was(was!["react.globalEnabled" = Off::Switch, "react.globalCompressionThreshold"])
        .doc(doc!("When the context exceeds this fraction of the window, 0..1, all larger results are shortened. `false` or 1: none is.")),
    Row::count("compress.minChars", 0).at(place!(react.result_compression_min_size)).scaled(200).of(Rung::Compress)
        .was(was!["react.resultCompressionMinSize"])
        .doc(doc!("Above `atFraction`, only results of more characters than this are shortened.")),
    Row::flag("compress.structured").at(place!(react.strategies)).was(was!["react.strategies"]).of(Rung::Compress)
        .doc(doc!("Shorten JSON, tables, logs, diffs and HTML by their structure, without a model; allow twice the length for results that later "
            "turns use; and adapt the requested length to earlier answers.")),
    Row::group("checkpoints").of(Rung::Age)
        .doc(doc!("Summaries that stay in the context as messages of their own and become shorter with age. Only in preset `checkpoint`.")),
    Row::group("checkpoints.maxTokens").of(Rung::Age)
        .doc(doc!("The longest checkpoint of each level, in tokens, in a window of up to 32K; in larger windows proportionally longer.")),
    Row::count("checkpoints.maxTokens.compact", 1).at(place!(checkpoint.levels.compact)).was(was!["checkpoint.compactTokens"]).of(Rung::Age)
        .doc(doc!("The longest checkpoint of level 1, in tokens.")),
    Row::count("checkpoints.maxTokens.moderate", 1).at(place!(checkpoint.levels.moderate)).was(was!["checkpoint.moderateTokens"]).of(Rung::Age)
        .doc(doc!("The longest checkpoint of level 2, in tokens.")),
    Row::count("checkpoints.maxTokens.detailed", 1).at(place!(checkpoint.levels.detailed)).was(was!["checkpoint.detailedTokens"]).of(Rung::Age)
        .doc(doc!("The longest checkpoint of level 3, in tokens.")),
    Row::count("checkpoints.promptTokens", 0).was(was!["checkpoint.promptBudget"]).of(Rung::Age)
        .default("by the window: 200 up to 4K, 500 up to 8K, 1,000 up to 16K, else 1,500")
        .doc(doc!("Tokens reserved for the system prompt. Checkpoints that exceed what remains are shortened and merged early. The default grows in "
            "proportion with windows above 32K, for the checkpoints only.")),
    Row::count("checkpoints.mergeCount", 2).at(place!(checkpoint.merge_count)).was(was!["checkpoint.mergeCount"]).of(Rung::Age)
        .doc(doc!("How many old checkpoints of level 1 are merged into one.")),
    Row::group("restoreFiles").or_false()
        .doc(doc!("After a summary, put the files that were read last back into the context. `false`: off. On in preset `layered`.")),
    Row::function("restoreFiles.read", "(path: string) => Promise<string>").default("what the model read")
        .doc(doc!("Reads a file as it is now. If it rejects, the text that the model read is used.")),
    Row::names("restoreFiles.tools").was(was!["layered.readTools"]).default("read_file").doc(doc!("The tools that read files, in any letter case.")),
    Row::range("restoreFiles.maxFiles", 0, 1_000).at(place!(restore.max_files)).was(was!["layered.maxRestoreFiles"])
        .doc(doc!("The most files to put back.")),
    Row::count("restoreFiles.maxTokensPerFile", 1).at(place!(restore.max_tokens_per_file)).scaled(100).was(was!["layered.maxRestoreTokensPerFile"])
        .doc(doc!("The most tokens of one file; a longer one is cut at the end.")),
    Row::count("restoreFiles.maxTokens", 1).at(place!(restore.max_tokens_total)).scaled(100).was(was!["layered.maxRestoreTokensTotal"])
        .doc(doc!("The most tokens of all files together.")),
    Row::group("handoff").or_false().default("`false`").sessions("only a session prepares prompts one after the other; give it to openSession")
        .doc(doc!("Show the model a notice, before the threshold is reached: how many tokens are left until a summary takes the place of older \
            messages, so that it can write down what matters. The notice is at the end of one prompt, with the live facts, and is not stored. \
            `session.recall.tools()` then has a third tool, `new_context`: the notes with which a model calls it take the place of the older \
            messages in the next prompt. `false`: off.")),
    Row::fraction("handoff.atFraction").default("0.9").sessions("only a session prepares prompts one after the other; give it to openSession")
        .doc(doc!("The notice is given from this fraction of `compactAt` on, 0..1.")),
    Row::group("limits").sessions(OPENS)
        .doc(doc!("What a session may cost, how many bytes its prompts may have, and how long a call of its store may take.")),
    Row::count("limits.requestBytes", 1_000).sessions(OPENS)
        .doc(doc!("Bytes that the messages of a prompt may have as JSON in UTF-8, images and documents in base64 included; providers refuse "
            "requests above about 20 to 50 MB. Above it, `prepare` replaces the oldest images and documents by a short text with what they were "
            "and a reference, down to three quarters of the limit; those of the user's newest message and the newest one stay. The log keeps "
            "them. If the prompt is still too large, `onExceed` decides. The system prompt and tools are not counted.")),
    Row::number("limits.usd", 0.0, 1e9).sessions(OPENS)
        .doc(doc!("What the calls of this session may cost, in USD: those that `context.recordUsage` and `step` report, and those for summaries "
            "that report their usage, all by `prices` or by those of `model`; without prices it is `invalid_option`. Once the sum reaches this, "
            "`onExceed` decides before the next prompt is handed out. A fork counts on its own.")),
    Row::choice("limits.onExceed", names!(ON_EXCEED)).sessions(OPENS).default("`warn`")
        .doc(doc!("What `prepare` does once `usd` is reached, or where a prompt is above `requestBytes`. `warn`: event `warning` with code "
            "`limit_reached`, once until it is below the limit again, and the prompt is handed out. `throw`: it rejects with `limit_reached`.")),
    Row::range("limits.storeTimeoutMs", 1, u32::MAX as usize).sessions(OPENS).default("30,000")
        .doc(doc!("Time limit of one call of the store, in ms. After it the call fails with `store_unavailable` if nothing was written, with "
            "`indeterminate` if that is unknown. A late answer is ignored, and the next call reads what is stored. `indexedDbStore` gives up "
            "after 10 s.")),
    Row::named("state", "StateOptions").compact(CARRIES)
        .doc(doc!("Go on from what the call before returned, for an app that keeps its messages itself and opens no session: `compact` then acts "
            "when that is due, as `prepare` does, and returns the next `state`. Pass the state itself, `null` at first, or this object.")),
    Row::host("state.value", "State | null").compact(CARRIES).default("`null`: there is none yet")
        .doc(doc!("The `state` that the call before returned for this conversation. The order of its fields may change, as in `jsonb` "
            "columns.")),
    Row::choice("state.when", names!(STATE_WHEN)).compact(CARRIES).default("`due`")
        .doc(doc!("`due`: compact when `compactAt` is reached, as `prepare` does. `now`: compact in any case.")),
    Row::range("state.maxBytes", 2_000, 1_000_000).compact(CARRIES).default("65,536")
        .doc(doc!("The most bytes that the returned state may take as JSON. If it would take more, the oldest stubs become bare references and the "
            "oldest summaries are shortened in it; the result's `reason` says so.")),
    Row::host("state.key", "Uint8Array | CryptoKey").compact(CARRIES)
        .doc(doc!("Signs the state with HMAC-SHA-256: 32 random bytes, or a `CryptoKey` that may `sign` and `verify`. A state with another "
            "signature, or none, rejects with `store_corrupt`. Without a key, whoever can write the state can put words into the prompt: keep it "
            "where clients cannot write, and never send it to one.")),
    Row::host("state.id", "string").compact(CARRIES).default("none")
        .doc(doc!("Your name for the conversation, signed with the state: with `key`, the state of another conversation is refused.")),
    Row::value("goal", "Goal")
        .doc(doc!("What the conversation is for; it guides summaries and is part of the system prompt. A session that already has a goal of this "
            "`id` keeps its own, with its progress.")),
    Row::host("signal", "AbortSignal").doc(doc!("Aborts a compaction, which rejects with `aborted`. Appended messages stay.")),
    Row::function("onProgress", "(progress: Progress) => void")
        .doc(doc!("Called as a compaction advances. In a session, event `progress` reports the same.")),
    Row::function("logger", "(level: LogLevel, message: string) => void")
        .doc(doc!("Receives log lines, and the warnings that would otherwise go to `console.warn`.")),
    Row::named("advanced", "AdvancedOptions").doc(doc!("Options that are rarely needed.")),
    Row::choice("advanced.estimator", names!(ESTIMATORS)).default("`calibrated`")
        .doc(doc!("How tokens are estimated: `calibrated` is fitted to real tokenizers, `chars4` is `round(characters / 4)`.")),
    Row::choice("advanced.prefixMismatchBehavior", names!(PREFIX_MISMATCH)).default("`error`")
        .doc(doc!("The value of `thinking.block_binding.prefix_mismatch_behavior` in your requests to Anthropic. `error`: signed thinking after an "
            "edit is removed. `drop_block`: it is left for the server to drop, so that the cached prefix stays the same.")),
    Row::host("advanced.runtime", "{ now(): number; id(): string }").default("the clock and random ids")
        .doc(doc!("A clock (`now`, ms since 1970) and a source of ids (`id`, any unique string), for reproducible runs.")),
    Row::host("advanced.watermark", "Watermark").sessions("compact and planCompaction store nothing; give it to openSession")
        .default("`localStorage` for a store in IndexedDB, else none")
        .doc(doc!("Where to record the session's progress outside the store, so that a database that the platform deleted or set back is noticed "
            "(event `data-loss`). Use one for each store. A failing watermark emits one `warning`.")),
    Row::count("advanced.maxOutputReserve", 0).was(was!["layered.outputReserve"]).default("20,000")
        .doc(doc!("Preset `layered`: the most tokens kept free for an answer.")),
    Row::count("advanced.promptReserve", 0).was(was!["layered.fixedReserve"]).default("13,000")
        .doc(doc!("Preset `layered`: tokens kept free for a system prompt and tools that are not counted.")),
    Row::count("advanced.minSavings", 0).at(place!(min_savings)).scaled(0).was(was!["layered.minSavings"]).of(Rung::Summarise)
        .doc(doc!("Do not summarize if the summary would replace fewer tokens than this.")),
    Row::count("advanced.minOffloadGain", 1).at(place!(compact_trigger_threshold)).scaled(100).was(was!["offload.compactTriggerThreshold"]).of(Rung::Summarise)
        .doc(doc!("Summarize if the cheaper steps freed fewer tokens than this.")),
    Row::count("advanced.cooldownSteps", 0).at(place!(compact_cooldown_steps)).was(was!["offload.compactCooldownSteps"]).of(Rung::Summarise)
        .doc(doc!("Calls of `prepare` between two attempts to summarize.")),
    Row::group("advanced.offload").doc(doc!("More options of `offload`.")),
    Row::number("advanced.offload.scanFraction", 0.0, 1.0).at(place!(offload.scan_ratio)).was(was!["offload.scanRatio"]).of(Rung::Offload)
        .doc(doc!("Fraction of the messages, oldest first, whose results may be stored, 0..1.")),
    Row::fraction("advanced.emergencyFraction").at(place!(emergency_share)).was(was!["factor3.emergencyShare"]).of(Rung::Rollover)
        .doc(doc!("Above this fraction of the window, 0..1, recent messages are summarized too, and a `warning` is emitted.")),
    Row::range("advanced.maxSnapshots", 1, MAX_SNAPSHOTS).at(place!(checkpoint.keep_snapshots)).was(was!["checkpoint.keepSnapshots"])
        .doc(doc!("How many snapshots a session keeps; the newest stay.")),
    Row::group("advanced.digest").of(Rung::Process).doc(doc!("More options of `digest`.")),
    Row::count("advanced.digest.structuredMinTokens", 0).at(place!(process.structured_min_tokens)).was(was!["factor3.structuredMinTokens"]).of(Rung::Process)
        .doc(doc!("Results in JSON or YAML of fewer tokens are not reduced.")),
    Row::count("advanced.digest.snippetChars", 1).at(place!(process.snippet_chars)).was(was!["factor3.snippetChars"]).of(Rung::Process)
        .doc(doc!("Length of the snippet of a search result, in characters.")),
    Row::count("advanced.digest.fileLines", 1).at(place!(process.file_lines)).was(was!["factor3.fileLines"]).of(Rung::Process)
        .doc(doc!("A file of more lines than this becomes its outline.")),
    Row::count("advanced.digest.outlineLines", 1).at(place!(process.outline_lines)).was(was!["factor3.outlineLines"]).of(Rung::Process)
        .doc(doc!("The most lines of an outline.")),
    Row::count("advanced.digest.queryRows", 1).at(place!(process.query_rows)).was(was!["factor3.queryRows"]).of(Rung::Process)
        .doc(doc!("A query result of more rows than this becomes a sample.")),
    Row::count("advanced.digest.sampleRows", 1).at(place!(process.sample_rows)).was(was!["factor3.sampleRows"]).of(Rung::Process)
        .doc(doc!("Rows of a sample.")),
    Row::count("advanced.digest.apiChars", 100).at(place!(process.api_chars)).was(was!["factor3.apiChars"]).of(Rung::Process)
        .doc(doc!("The most characters of the fields of an API response.")),
    Row::group("advanced.compress").of(Rung::Compress).doc(doc!("More options of `compress`.")),
    Row::count("advanced.compress.chunkChars", 1).at(place!(react.chunk_size)).was(was!["react.chunkSize"]).of(Rung::Compress)
        .doc(doc!("A longer result is summarized in chunks of this many characters.")),
    Row::fraction("advanced.compress.chunkFraction").at(place!(react.chunk_ratio)).was(was!["react.chunkRatio"]).of(Rung::Compress)
        .doc(doc!("Length of a shortened chunk, as a fraction of the chunk, 0..1.")),
    Row::fraction("advanced.compress.secondFraction").at(place!(react.second_ratio)).was(was!["react.secondRatio"]).of(Rung::Compress)
        .doc(doc!("If the joined chunks are still too long, they are shortened to this fraction, 0..1.")),
    Row::fraction("advanced.compress.fraction").at(place!(react.global_ratio)).was(was!["react.globalRatio"]).of(Rung::Compress)
        .doc(doc!("Above `compress.atFraction`, each result is shortened to this fraction, 0..1.")),
    Row::fraction("advanced.compress.referencedFraction").at(place!(react.reliance_ratio)).was(was!["react.relianceRatio"]).of(Rung::Compress)
        .doc(doc!("The largest fraction that a result which later turns use is shortened to, 0..1.")),
    Row::group("advanced.checkpoints").of(Rung::Age).doc(doc!("More options of `checkpoints`.")),
    Row::fraction("advanced.checkpoints.triggerFraction").at(place!(checkpoint.trigger_share)).was(was!["checkpoint.triggerShare"]).of(Rung::Age)
        .doc(doc!("Compact above this fraction of the window less system prompt and answer, 0..1.")),
    Row::count("advanced.checkpoints.level1Above", 1).at(place!(checkpoint.levels.compact_above)).was(was!["checkpoint.compactAbove"]).of(Rung::Age)
        .doc(doc!("A summary of more tokens of messages than this becomes a checkpoint of level 1, the shortest.")),
    Row::count("advanced.checkpoints.level2Above", 1).at(place!(checkpoint.levels.moderate_above)).was(was!["checkpoint.moderateAbove"]).of(Rung::Age)
        .doc(doc!("A summary of more tokens of messages than this becomes a checkpoint of level 2; of fewer, of level 3.")),
    Row::count("advanced.checkpoints.level2Age", 1).at(place!(checkpoint.age_moderate)).was(was!["checkpoint.ageModerate"]).of(Rung::Age)
        .doc(doc!("After this many later compactions a checkpoint is shortened to level 2.")),
    Row::count("advanced.checkpoints.level1Age", 1).at(place!(checkpoint.age_compact)).was(was!["checkpoint.ageCompact"]).of(Rung::Age)
        .doc(doc!("After this many later compactions a checkpoint is shortened to level 1.")),
    Row::group("advanced.carry").doc(doc!("How much preset `balanced` keeps from the replaced messages beside a summary.")),
    Row::fraction("advanced.carry.verbatimFraction").at(place!(keep.must_share))
        .doc(doc!("Limit of pins, constraints and the user's newest messages that are quoted, as a fraction of the replaced tokens, 0..1. The "
            "larger of this and `verbatimTokens` applies.")),
    Row::count("advanced.carry.verbatimTokens", 0).at(place!(keep.must_tokens)).scaled(100).doc(doc!("The same limit in tokens.")),
    Row::fraction("advanced.carry.factsFraction").at(place!(keep.share))
        .doc(doc!("Length of the list of files, open errors, tasks and evidence, as a fraction of the replaced tokens, 0..1.")),
    Row::count("advanced.carry.factsMinTokens", 0).at(place!(keep.least_tokens)).scaled(100).doc(doc!("The least length of that list, in tokens.")),
    Row::count("advanced.carry.factsMaxTokens", 0).at(place!(keep.most_tokens)).scaled(200).doc(doc!("The greatest length of that list, in tokens.")),
    Row::count("advanced.retryWaitMs", 0).at(place!(retry_wait_ms))
        .doc(doc!("Wait before the next attempt at a summary, in ms, multiplied by the number of attempts so far.")),
    Row::host("id", "string").sessions("compact and planCompaction keep nothing; a session of this id is opened with openSession").default("a new one")
        .doc(doc!("Your name for the session. `openSession` continues a stored session of this name.")),
    Row::host("store", "Store | \"memory\" | \"indexeddb\"").sessions("compact and planCompaction store nothing; give it to openSession")
        .default("`indexeddb` in browsers; elsewhere memory, but for a session with an `id` there is none")
        .doc(doc!("Where the session is stored: `indexedDbStore`, `fileStore`, `durableObjectStore`, `sqlStore`, `redisStore`, a `Store` of your own, or "
            "`memory`, where sessions of one `id` are shared until the process ends. If a browser may store nothing, `indexeddb` falls back to "
            "memory with a `warning` (`archive.durability` is `none`); a store that you pass rejects with `store_unavailable` instead.")),
    Row::host("systemPrompt", "string | (() => string)").sessions("count it in reserveTokens, or give it to openSession")
        .doc(doc!("The system prompt, which counts toward the window. A function is called at every `prepare`.")),
    Row::choice("onDiverged", names!(ON_DIVERGED)).sessions("there is no session to hand a history to; give it to openSession").default("`branch`")
        .doc(doc!("What `session.sync` does when the history differs from the session's. `branch`: it goes back to just before the first "
            "difference and appends what was given; both branches stay in the log, and the event `branch` names the place. `throw`: it rejects "
            "with `diverged` and appends nothing.")),
    Row::text("parent").open("a session that is imported has the parent that it had; to begin one from a parent, use openSession")
        .doc(doc!("The `id` of the session that this new, empty session belongs to, for a sub-agent (`archive.children()`).")),
    Row::flag("acceptDataLoss").open(STORED).default("false")
        .doc(doc!("If the session that was stored under `id` is gone, begin it again. Otherwise opening it rejects with `data_loss`.")),
    Row::flag("mustExist").open(STORED).default("false")
        .doc(doc!("If the store has no session called `id`, reject with `data_loss` instead of creating one: a session that the browser deleted "
            "with all other data then does not look new.")),
    Row::choice("presetOptions.tier", names!(Tier::ALL)).was(was!["checkpoint.tier"]).of(Rung::Age).default("by `contextWindow`")
        .doc(doc!("The size of the window, by which the default of `promptBudget` is chosen.")),
    Row::count("presetOptions.safetyMargin", 0).was(was!["checkpoint.safetyMargin"]).of(Rung::Age).default("1,000, at most a quarter of the window")
        .doc(doc!("Tokens kept free for the answer if `maxOutputTokens` is not given.")),
    Row::value("presetOptions.profiles", "ModelProfile[]").was(was!["checkpoint.profiles"]).of(Rung::Age)
        .doc(doc!("Window sizes that models can be run with. The window is then what `model` accepts at size `contextWindow`; a size that is not "
            "listed is `invalid_option`.")),
    Row::count("presetOptions.modelContextLimit", 1).was(was!["react.modelContextLimit"]).of(Rung::Compress).default("the window, in tokens")
        .doc(doc!("The window, in characters.")),
    Row::count("presetOptions.systemPromptLength", 0).at(place!(react.system_prompt_length)).scaled(0).was(was!["react.systemPromptLength"]).of(Rung::Compress)
        .doc(doc!("Length of the system prompt, in characters of `modelContextLimit`.")),
    Row::count("presetOptions.instructionLength", 0).at(place!(react.instruction_length)).scaled(0).was(was!["react.instructionLength"]).of(Rung::Compress)
        .doc(doc!("Length of the instructions, in characters of `modelContextLimit`.")),
];

/// The session's row, which every commit writes, names them all.
const MAX_SNAPSHOTS: usize = 100;
