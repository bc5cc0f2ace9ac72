//! The detector on sentences of twelve languages: what it proposes, and the many that it must leave alone.

use super::*;
use std::borrow::Cow;

fn found(text: &str) -> Vec<&str> {
    constraints_of(text)
}

fn each_is(sentences: &[&str]) {
    let missed: Vec<&&str> = sentences.iter().filter(|sentence| found(sentence) != [**sentence]).collect();
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

fn none_is(sentences: &[&str]) {
    let wrong: Vec<&&str> = sentences.iter().filter(|sentence| !found(sentence).is_empty()).collect();
    assert!(wrong.is_empty(), "proposed: {wrong:#?}");
}

#[test]
fn s4_3_every_pattern_begins_with_a_word_that_can_be_looked_up() {
    for language in LANGUAGES {
        for pattern in [language.opens, language.holds, language.unless].concat() {
            let (first, _) = pattern.split_once(' ').unwrap_or((pattern, ""));
            let is_word = |choice: &str| {
                choice.chars().all(|letter| letter.is_alphanumeric() || "_'-".contains(letter))
            };
            assert!(!first.is_empty() && first.split('|').all(is_word), "{pattern}");
        }
    }
}

#[test]
fn s4_3_constraints_in_english_are_found() {
    each_is(&[
        "Never push to main.",
        "never commit secrets",
        "Always use tabs.",
        "Please don’t use any new dependency.",
        "Do not touch the billing table.",
        "You must not touch the billing table.",
        "Refactor the parser, but don't change the public API.",
        "The tests must pass before you commit.",
        "All functions must have doc comments.",
        "You should never force push.",
        "Use only the standard library.",
        "Only use TypeScript.",
        "Avoid global state.",
        "Make sure every endpoint is covered by a test.",
        "Ensure that the output is valid JSON.",
        "Keep answers under 200 words.",
        "From now on, answer in French.",
        "Under no circumstances delete user data.",
        "Fix the bug without changing the public API.",
        "No new dependencies, please.",
        "Pushing to main is strictly forbidden.",
        "migrations/ is off limits.",
        "We always use tabs in this repo.",
        "I don't want you to touch the tests.",
        "Answer only in English.",
        "Never `git push --force`.",
        "Constraint: Python 3.11 only",
        "IMPORTANT: do not modify package-lock.json!",
        "Never touch 设计.md",
        "Remember to always run the linter before a commit.",
    ]);
}

#[test]
fn s4_3_what_is_no_constraint_in_english_is_left_alone() {
    none_is(&[
        "I never knew that.",
        "I never knew that you must be logged in?",
        "Never mind.",
        "Don't worry about it.",
        "Never seen this before.",
        "Never worked for me.",
        "Always fails on the second run.",
        "It always worked before.",
        "This must be a bug.",
        "There must be something wrong with the cache.",
        "It must have been changed by someone.",
        "I must admit that I like it.",
        "I have to go now.",
        "We had to restart the server twice.",
        "Should I always use tabs?",
        "Do we have to support Windows?",
        "Must this be a string?",
        "What does \"never push to main\" mean in the guide?",
        "The guide says “never push to main”.",
        "He said `do not edit` in the header.",
        "> Never push to main.",
        "    // never call this twice",
        "Only two tests failed.",
        "The server only started once.",
        "This should never happen.",
        "It shouldn't take long.",
        "I don't know why it fails.",
        "I don't have access to the repo.",
        "You never told me about that.",
        "The build is green.",
        "Let's look at the parser next.",
        "It prints one line with only `systemMessage` — no `additionalContext`, so nothing is lost.",
        "Thanks, that is always helpful!",
        "No problem.",
        "No idea what happened.",
        "musterhaft gemacht, danke",
        "must",
        "403 Forbidden: access to this resource is denied",
        "Access is denied.",
        "I tried it without changing anything.",
        "Does this only work locally?",
        "Can you read src/main.rs and tell me what it does?",
        "Add a function that returns the sum.",
        "The function never returns.",
        "It keeps happening under load.",
    ]);
}

#[test]
fn s4_3_constraints_in_many_languages_are_found() {
    each_is(&[
        // Chinese, simplified and traditional
        "不要修改数据库结构。",
        "必须使用 TypeScript。",
        "禁止提交到 main 分支。",
        "请勿删除任何文件！",
        "回答不得超过两百字。",
        "只能使用标准库。",
        "你不能改动测试。",
        "請勿修改資料庫。",
        "必須使用繁體中文回答。",
        "千萬別刪除備份。",
        // Japanese
        "テストは必ず実行してください。",
        "mainに直接プッシュしないでください。",
        "新しい依存関係を追加してはいけません。",
        "データベースの変更は禁止です。",
        "回答は200文字以内でお願いします、以内で書いてください。",
        // Korean
        "main 브랜치에 절대 푸시하지 마세요.",
        "반드시 테스트를 실행하세요.",
        "데이터베이스 수정은 금지입니다.",
        "새 패키지를 추가하면 안 됩니다.",
        "항상 한국어로 답해 주세요.",
        // Spanish
        "Nunca borres los datos.",
        "No modifiques la base de datos.",
        "Siempre usa tabulaciones.",
        "Los tests deben pasar antes de cada commit.",
        "Está prohibido tocar la carpeta de migraciones.",
        "Bajo ninguna circunstancia subas cambios a main.",
        // French
        "Ne touche jamais à la base.",
        "N'utilisez pas de nouvelle dépendance.",
        "Il ne faut pas modifier l'API publique.",
        "Utilise toujours des tabulations.",
        "Les tests doivent être verts.",
        "En aucun cas tu ne pousses sur main.",
        // German
        "Die Tests müssen grün bleiben.",
        "Niemals auf main pushen.",
        "Ändere die Datenbank nicht.",
        "Du darfst die Schnittstelle nicht ändern.",
        "Bitte verwende immer Tabs.",
        "Auf keinen Fall Daten löschen!",
        // Portuguese
        "Não altere o banco de dados.",
        "Nunca apague os dados.",
        "Use apenas a biblioteca padrão.",
        "É proibido mexer na pasta de migrações.",
        "Você deve responder em português.",
        // Russian
        "Никогда не удаляй данные.",
        "Не меняй структуру базы данных.",
        "Всегда используй табуляцию.",
        "Тесты должны проходить.",
        "Нельзя трогать миграции.",
        "Ни в коем случае не пушь в main.",
        // Arabic
        "لا تستخدم مكتبات جديدة.",
        "يجب أن تكون كل الاختبارات ناجحة.",
        "ممنوع تعديل قاعدة البيانات.",
        "استخدم دائمًا علامات التبويب.",
        // Hebrew
        "אל תשנה את מסד הנתונים.",
        "אסור למחוק קבצים.",
        "חובה להריץ את הבדיקות.",
        "תמיד השתמש בטאבים.",
    ]);
}

#[test]
fn s4_3_what_is_no_constraint_in_other_languages_is_left_alone() {
    none_is(&[
        "今天天气很好。",
        "我不能登录了，怎么办。",
        "要不要加一个测试？",
        "这个结果不准确。",
        "他不得不重启服务器。",
        "访问被禁止，返回 403。",
        "我不要求完美。",
        "我必须承认这很难。",
        "能不能帮我看一下。",
        "昨天の会議は長かったです。",
        "必ずしも正しいとは限りません。",
        "心配しないでください。",
        "これは必須ですか？",
        "私は行かなければならない。",
        "오늘 날씨가 좋네요.",
        "저는 가야 합니다.",
        "로그인이 안 됩니다.",
        "꼭 필요한가요?",
        "걱정하지 마세요.",
        "Nunca supe por qué falla.",
        "No sé qué pasó.",
        "Debe de ser un error.",
        "Debe ser un problema de red.",
        "¿Debo usar siempre tabulaciones?",
        "No te preocupes.",
        "Je ne sais jamais quoi répondre.",
        "Ça doit être un bug.",
        "Je dois partir.",
        "Ich muss gestehen, dass es mir gefällt.",
        "Das muss ein Fehler sein.",
        "Nie gesehen.",
        "Immer wieder derselbe Fehler.",
        "Darf ich die Tests ändern?",
        "Keine Ahnung.",
        "Nunca vi isso antes.",
        "Deve ser um erro de rede.",
        "Я должен признать, что это красиво.",
        "Он никогда не отвечал.",
        "Нельзя ли посмотреть логи?",
        "Это должно быть ошибка.",
        "لا أعرف لماذا فشل.",
        "هل يجب أن أستخدم هذا؟",
        "אני חייב ללכת.",
        "אל תדאג.",
    ]);
}

#[test]
fn s4_3_code_quotes_and_pasted_text_are_not_the_users_orders() {
    none_is(&[
        "Look:\n```\n// Never push to main.\n```\nwhat does it do",
        "~~~\nAlways use tabs.\n~~~",
        "<file path=\"a.md\">\nNever push to main.\nAlways use tabs.\n</file>",
        "<rules>Never push to main.</rules>",
        "$ never push",
        "{ \"rule\": \"never push to main\" }",
        "| always use tabs |",
        "// Do not edit this file.",
    ]);
    assert_eq!(found("```\nalways use tabs\n```\nNever push to main."), ["Never push to main."]);
    assert_eq!(found("a <b> c\nNever push to main."), ["Never push to main."], "a tag that nothing closes");
    assert_eq!(found("<doc>\nAlways use tabs.\n</doc>\nNever push to main."), ["Never push to main."]);
}

#[test]
fn s4_3_a_list_under_a_title_is_constraints() {
    let text = "Build the parser.\n\n## Requirements:\n\n- Python 3.11\n- p99 < 20 ms\n1. 한국어\n\nThanks!\n- not this";
    assert_eq!(found(text), ["Python 3.11", "p99 < 20 ms", "1. 한국어"]);
    assert_eq!(found("要求：\n- 使用 Rust\n- 延迟低于 20 毫秒"), ["使用 Rust", "延迟低于 20 毫秒"]);
    assert!(found("My thoughts:\n- Python 3.11").is_empty());
    assert!(found("Requirements:").is_empty());
}

#[test]
fn s4_3_sentences_are_taken_to_the_letter_and_long_ones_are_texts() {
    let text = "Fix it. Never touch $& </message> 👩‍👩‍👧!  Then rest.\n* Always use tabs";
    assert_eq!(found(text), ["Never touch $& </message> 👩‍👩‍👧!", "Always use tabs"]);
    assert!(found(&format!("Never use {}", "word ".repeat(100))).is_empty());
    assert!(found(&"never use ".repeat(20_000)).is_empty(), "and it takes no time");
}

#[test]
fn s4_3_only_the_users_own_words_count() {
    let rule = || Part::Text(Cow::Borrowed("Never push to main."));
    let message = |role, parts| Message { role, parts };
    assert_eq!(constraints(&message(Role::User, vec![rule(), rule()])), ["Never push to main."]);
    for role in [Role::System, Role::Assistant, Role::Tool] {
        assert!(constraints(&message(role, vec![rule()])).is_empty(), "{role:?}");
    }
}
