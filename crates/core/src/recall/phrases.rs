//! The phrases that [`super::inquiry`] knows, in lower case, without apostrophes.

/// How a request begins that is no question.
pub(super) const BEGINS: &[&str] = &[
    "list", "name", "show", "give", "tell", "enumerate",
];
/// Words for speaking.
pub(super) const SPEECH: &[&str] = &[
    "mention", "mentioned", "bring", "brought", "raise", "raised", "tell", "told", "ask", "asked", "say", "said",
    "talk", "talked", "discuss", "discussed", "share", "shared", "cover", "covered", "request", "requested",
    "suggest", "suggested", "recommend", "recommended", "describe", "described", "explain", "explained",
];
/// Words that ask for an order, or for all there is, and say nothing of what about.
pub(super) const FORM: &[&str] = &[
    "order", "chronological", "chronologically", "sequence", "timeline", "first", "last", "latest", "newest",
    "oldest", "earliest", "recent", "recently", "initially", "earlier", "came", "come", "happened", "list", "name",
    "show", "give", "enumerate", "everything", "every", "thing", "things", "topic", "topics", "aspects",
    "different", "various", "conversation", "conversations", "session", "chat", "far", "ones", "message",
    "messages", "question", "questions", "request", "requests", "up", "started", "start", "beginning",
    "throughout", "during", "please", "remember", "once", "ever", "did", "done", "made", "make",
];
/// What asks for an order.
pub(super) const ORDER: &[&str] = &[
    "in which order", "in what order", "the order in which", "what order", "which order", "in order",
    "in chronological order", "came first", "come first", "came up first", "come up first", "happened first",
    "first thing", "first things", "first message", "first question", "first request", "last thing",
    "last message", "last question", "last request", "in welcher reihenfolge", "was kam zuerst", "dans quel ordre",
    "en qué orden", "em que ordem", "в каком порядке", "顺序", "先后", "順序", "順番", "순서",
];
/// What asks for all there is.
pub(super) const LIST: &[&str] = &[
    "all", "every", "everything", "each", "a list", "全部", "所有", "列出", "すべて", "모든",
];
/// The oldest.
pub(super) const FIRST: &[&str] = &[
    "first", "earliest", "initially", "oldest",
];
/// The newest.
pub(super) const LAST: &[&str] = &[
    "last", "latest", "newest", "recent", "recently", "just",
];
/// What the user lays down.
pub(super) const RULES: &[&str] = &[
    "rules", "instructions", "constraints", "requirements", "restrictions", "guidelines", "prohibitions", "regeln",
    "règles", "reglas", "regras", "правила", "规则", "規則", "规定", "ルール", "규칙",
];
/// Who laid it down, or for whom.
pub(super) const GIVEN: &[&str] = &[
    "did i", "have i", "i gave", "i set", "ive", "i have", "my", "i give", "i laid", "i stated", "you follow",
    "you must", "user", "habe ich", "ai je", "te di", "他", "我", "ユーザー", "제가",
];
/// What asks for that without naming it.
pub(super) const FORBIDDEN: &[&str] = &[
    "did i forbid", "have i forbidden", "i forbade", "did i prohibit", "are you not allowed", "are you forbidden",
    "must you never", "must you always", "must you not", "should you never", "should you always",
    "you should never do", "you must never do", "niemals tun", "nie tun", "jamais faire", "nunca hacer",
    "nunca hicieras", "никогда не делать", "永远不要做", "不要做什么", "别做什么", "不许",
];
/// What stands between "I asked you" and the rule.
pub(super) const NEVER: &[&str] = &[
    "never", "not", "always", "only", "avoid", "stop", "dont",
];
/// What is done to a file.
pub(super) const MADE: &[&str] = &[
    "edit", "edited", "change", "changed", "modify", "modified", "create", "created", "write", "wrote", "written",
    "delete", "deleted", "remove", "removed", "touch", "touched", "add", "added", "update", "updated",
];
/// The same, where it stays as it is.
pub(super) const LOOKED: &[&str] = &[
    "read", "open", "opened", "view", "viewed", "look", "looked",
];
/// What is done with a command.
pub(super) const RAN: &[&str] = &[
    "run", "ran", "execute", "executed", "use", "used", "type", "typed",
];
/// What one does with an error.
pub(super) const MET: &[&str] = &[
    "hit", "see", "saw", "seen", "get", "got", "have", "had", "occur", "occurred", "happen", "happened",
    "encounter", "encountered", "there", "run", "ran", "appear", "appeared",
];
