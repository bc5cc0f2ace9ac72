//! Sentences that bind: constraints that the user stated, decisions that were taken.

use context_compactor_scan::phrases::Phrases;
use std::sync::LazyLock;

/// How many sentence characters are kept; a longer one is not a rule but a text.
pub(super) const LONGEST: usize = 400;

/// Single words, lower case, that make a user's sentence a constraint.
const CONSTRAINT_WORDS: &[&str] = &[
    "must",
    "mustn't",
    "never",
    "don't",
    "dont",
    "don’t",
    "always",
    "only",
    "shouldn't",
    "shouldn’t",
    "forbidden",
    "avoid",
    "without",
    "required",
    "ensure",
    "prefer", // English
    "muss",
    "müssen",
    "niemals",
    "nie",
    "immer",
    "nur",
    "darf",
    "dürfen",
    "keinesfalls",
    "unbedingt", // German
    "doit",
    "doivent",
    "jamais",
    "toujours",
    "uniquement",
    "seulement",
    "obligatoire",
    "interdit", // French
    "debe",
    "deben",
    "nunca",
    "siempre",
    "solo",
    "sólo",
    "solamente",
    "únicamente",
    "prohibido", // Spanish
    "deve",
    "devem",
    "sempre",
    "apenas",
    "somente",
    "mai",
    "devono", // Portuguese, Italian
    "должен",
    "должны",
    "нельзя",
    "никогда",
    "всегда",
    "только",
    "обязательно", // Russian
];

/// Phrases that do the same, also in scripts without blanks.
const CONSTRAINT_PHRASES: &[&str] = &[
    "do not",
    "make sure",
    "should not",
    "at least",
    "at most",
    "no more than",
    "not allowed",
    "has to",
    "have to",
    "auf keinen fall",
    "bitte nicht",
    "ne pas",
    "il faut",
    "asegúrate",
    "tiene que", // Latin scripts
    "必须",
    "必須",
    "不要",
    "不能",
    "不得",
    "不可",
    "不准",
    "不许",
    "禁止",
    "务必",
    "務必",
    "一定要",
    "只能",
    "只用",
    "总是",
    "永远",
    "绝不",
    "切勿",
    "请勿",
    "請勿",
    "仅限",
    "应当",
    "应该", // Chinese
    "必ず",
    "しないで",
    "ないでください",
    "のみ",
    "だけ",
    "常に",
    "絶対",
    "べき",
    "なければ",
    "てはいけ", // Japanese
    "반드시",
    "절대",
    "하지 마",
    "하지마",
    "말아",
    "말 것",
    "항상",
    "오직",
    "금지",
    "꼭 ",
    "해야",
    "안 됩니다",
    "안 돼", // Korean
];

/// Phrases, lower case, that make a sentence a decision.
const DECISION_PHRASES: &[&str] = &[
    "decided",
    "decision:",
    "let's go with",
    "let’s go with",
    "we'll go with",
    "we will go with",
    "going with",
    "we'll use",
    "we will use",
    "let's use",
    "let’s use",
    "i chose",
    "we chose",
    "agreed",
    "settled on",
    "the reason we",
    "instead of", // English
    "entschieden",
    "entscheidung",
    "wir nehmen",
    "décidé",
    "décision",
    "decidido",
    "decidimos",
    "decisión",
    "решили",
    "决定",
    "決定",
    "我们用",
    "我们使用",
    "改用",
    "选择了",
    "採用",
    "采用",
    "にします",
    "決め",
    "결정",
    "하기로",
];

static CONSTRAINTS: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(CONSTRAINT_PHRASES));
static DECISIONS: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(DECISION_PHRASES));

/// True when a user's sentence states a requirement, a limit or a prohibition.
pub(super) fn is_constraint(sentence: &str) -> bool {
    let Some(lower) = lowered(sentence) else { return false };
    // A question binds nobody, unless it is a polite request.
    const REQUESTS: [&str; 3] = ["can you", "could you", "please"];
    if lower.ends_with(['?', '？']) && !REQUESTS.iter().any(|request| lower.contains(request)) {
        return false;
    }
    CONSTRAINTS.is_in(&lower)
        || lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
            .any(|word| CONSTRAINT_WORDS.contains(&word))
}

/// True when a sentence reports a decision.
pub(super) fn is_decision(sentence: &str) -> bool {
    lowered(sentence).is_some_and(|lower| DECISIONS.is_in(&lower))
}

/// The sentence in lower case; `None` when it is too short or too long to bind anybody.
fn lowered(sentence: &str) -> Option<String> {
    let chars = sentence.chars().take(LONGEST + 1).count();
    let latin = sentence.is_ascii();
    // Four Chinese characters make a sentence, four Latin letters do not.
    (chars <= LONGEST && chars >= if latin { 12 } else { 4 }).then(|| sentence.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesson_lost_constraints_are_seen_in_many_languages() {
        for sentence in [
            "You must not touch the billing table.",
            "Never push to main.",
            "Please don’t use any new dependency.",
            "不要修改数据库结构。",
            "必须使用 TypeScript。",
            "テストは必ず実行してください。",
            "main 브랜치에 절대 푸시하지 마세요.",
            "Die Tests müssen grün bleiben.",
            "Ne touche jamais à la base.",
            "Nunca borres los datos.",
            "Никогда не удаляй данные.",
        ] {
            assert!(is_constraint(sentence), "{sentence}");
        }
        for sentence in [
            "Does this only work locally?",
            "The build is green.",
            "今天天气很好。",
            "musterhaft gemacht, danke",
        ] {
            assert!(!is_constraint(sentence), "{sentence}");
        }
    }

    #[test]
    fn decisions_are_seen() {
        assert!(is_decision("We decided to keep SQLite."));
        assert!(is_decision("我们决定使用 Postgres。"));
        assert!(!is_decision("The table has four columns."));
    }
}
