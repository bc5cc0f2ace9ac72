//! Headings in the language of the conversation.

use super::super::quote::RULES;
use super::stored::stored;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The sections of a layer, in their order.
pub(super) const GOAL: usize = 0;
pub(super) const CONSTRAINTS: usize = 1;
pub(super) const SAID: usize = 2;
pub(super) const TASKS: usize = 3;
pub(super) const ERRORS: usize = 4;
pub(super) const FILES: usize = 5;
pub(super) const HAPPENED: usize = 6;
pub(super) const DETAILS: usize = 7;

/// The headings of a language.
pub(super) type Headings = [&'static str; 8];

const ENGLISH: Headings = [
    "Goal",
    "Constraints",
    "What the user said",
    "Open tasks",
    "Open errors",
    "Files",
    "What happened",
    "Details",
];

/// Headings of languages that are known by small words, which English does not have.
const LATIN: [(&[&str], Headings); 5] = [
    (
        &["der", "die", "und", "nicht", "das", "ist", "ich", "mit", "ein", "bitte"],
        [
            "Ziel",
            "Vorgaben",
            "Was gesagt wurde",
            "Offene Aufgaben",
            "Offene Fehler",
            "Dateien",
            "Was geschah",
            "Einzelheiten",
        ],
    ),
    (
        &["le", "les", "des", "est", "une", "pas", "pour", "dans", "je", "vous"],
        [
            "But",
            "Contraintes",
            "Ce qui a été dit",
            "Tâches ouvertes",
            "Erreurs ouvertes",
            "Fichiers",
            "Ce qui s'est passé",
            "Détails",
        ],
    ),
    (
        &["el", "los", "las", "que", "una", "por", "para", "con", "del", "como"],
        [
            "Objetivo",
            "Restricciones",
            "Lo dicho",
            "Tareas abiertas",
            "Errores abiertos",
            "Archivos",
            "Lo que pasó",
            "Detalles",
        ],
    ),
    (
        &["o", "os", "não", "uma", "para", "com", "você", "em", "do", "da"],
        [
            "Objetivo",
            "Restrições",
            "O que foi dito",
            "Tarefas abertas",
            "Erros abertos",
            "Arquivos",
            "O que aconteceu",
            "Detalhes",
        ],
    ),
    (
        &["il", "che", "non", "una", "per", "con", "della", "sono", "di", "gli"],
        [
            "Obiettivo",
            "Vincoli",
            "Cosa è stato detto",
            "Attività aperte",
            "Errori aperti",
            "File",
            "Che cosa è successo",
            "Dettagli",
        ],
    ),
];

const ENGLISH_WORDS: [&str; 10] = ["the", "and", "is", "to", "of", "in", "it", "for", "that", "this"];

/// Who has a small word.
#[derive(Default)]
struct Speakers {
    english: bool,
    latin: [bool; LATIN.len()],
}

static SMALL_WORDS: LazyLock<HashMap<&'static str, Speakers>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Speakers> = HashMap::new();
    for word in ENGLISH_WORDS {
        all.entry(word).or_default().english = true;
    }
    for (nth, (words, _)) in LATIN.iter().enumerate() {
        for word in *words {
            all.entry(word).or_default().latin.get_mut(nth).into_iter().for_each(|theirs| *theirs = true);
        }
    }
    all
});

const RUSSIAN: Headings = [
    "Цель",
    "Требования",
    "Что сказано",
    "Открытые задачи",
    "Открытые ошибки",
    "Файлы",
    "Что произошло",
    "Подробности",
];
const CHINESE: Headings = ["目标", "约束", "用户所说", "待办", "未解决的错误", "文件", "经过", "细节"];
const JAPANESE: Headings =
    ["目的", "制約", "ユーザーの発言", "未完了のタスク", "未解決のエラー", "ファイル", "経過", "詳細"];
const KOREAN: Headings =
    ["목표", "제약", "사용자 발언", "남은 작업", "미해결 오류", "파일", "진행 상황", "세부 사항"];

/// Which language is spoken, as counted so far.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    han: usize,
    kana: usize,
    hangul: usize,
    cyrillic: usize,
    english: usize,
    latin: [usize; 5],
    letters: usize,
}

stored!(Spoken { han, kana, hangul, cyrillic, english, latin, letters });

impl Spoken {
    /// Listens to a text that somebody said.
    pub(super) fn hear(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\u{3040}'..='\u{30ff}' => self.kana += 1,
                '\u{3400}'..='\u{9fff}' => self.han += 1,
                '\u{ac00}'..='\u{d7af}' => self.hangul += 1,
                '\u{400}'..='\u{4ff}' => self.cyrillic += 1,
                letter => self.letters += usize::from(letter.is_alphabetic()),
            }
        }
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| (1..=5).contains(&word.len())) {
            let is_lower = word.bytes().all(|byte| byte.is_ascii_lowercase());
            let word = if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) };
            let Some(speakers) = SMALL_WORDS.get(&*word) else { continue };
            self.english += usize::from(speakers.english);
            for (count, is_theirs) in self.latin.iter_mut().zip(speakers.latin) {
                *count += usize::from(is_theirs);
            }
        }
    }

    /// The headings of the language that is spoken most. A character of Chinese says about as much as three letters.
    pub(super) fn headings(&self) -> &'static Headings {
        let dense = self.han + self.kana + self.hangul;
        if 3 * dense > self.letters.max(1) {
            return match () {
                () if self.hangul >= self.han + self.kana => &KOREAN,
                () if 5 * self.kana > dense => &JAPANESE,
                () => &CHINESE,
            };
        }
        if self.cyrillic > self.letters {
            return &RUSSIAN;
        }
        let most = self.latin.iter().zip(&LATIN).max_by_key(|(count, _)| **count);
        match most {
            Some((count, (_, headings))) if *count > self.english && *count > 2 => headings,
            _ => &ENGLISH,
        }
    }

    /// Which section a heading of any language opens.
    pub(super) fn section(heading: &str) -> Option<usize> {
        let all = [&ENGLISH, &RUSSIAN, &CHINESE, &JAPANESE, &KOREAN].into_iter();
        let all = all.chain(LATIN.iter().map(|(_, headings)| headings));
        all.into_iter().find_map(|headings| headings.iter().position(|known| *known == heading))
    }
}

/// What the user laid down, in the message of a summary: after it, in the layer beside it, or in what it says and quotes
/// of what the user said, where `in_line` looks for it.
pub(in crate::summary) fn laid_down<'t>(
    text: &'t str,
    in_line: impl Fn(&'t str) -> Vec<&'t str>,
) -> Vec<&'t str> {
    let (mut found, mut section, mut is_quote) = (Vec::new(), None, false);
    for line in text.lines() {
        if is_quote {
            is_quote = line != "</message>";
            found.extend(in_line(line));
        } else if line.starts_with("<message index=\"") && line.ends_with(" role=\"user\">") {
            is_quote = true;
        } else if let Some(name) = line.strip_prefix("## ") {
            section = Spoken::section(name.trim());
        } else if line == RULES {
            section = Some(CONSTRAINTS);
        } else if let Some(bullet) = line.strip_prefix("- ") {
            match section {
                Some(CONSTRAINTS) => found.push(bullet),
                Some(GOAL | SAID) => found.extend(in_line(bullet)),
                _ => {}
            }
        } else if !line.starts_with("  ") {
            section = None;
        }
    }
    found
}
