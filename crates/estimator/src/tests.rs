use super::*;
use proptest::prelude::*;

/// Texts of this test's own (none is in the corpus of the fit) with their exact o200k counts.
#[rustfmt::skip]
const KNOWN: [(&str, usize, &str); 12] = [
    ("English", 37, "The compactor keeps a conversation inside the model's context window without losing anything: what leaves the window stays in the store, and the model can ask for it again by its reference."),
    ("Rust", 77, "pub fn split(messages: &[Message<'_>], budget: usize) -> Option<usize> {\n    let mut left = budget;\n    for (index, message) in messages.iter().enumerate().rev() {\n        left = left.checked_sub(message.tokens())?;\n        if message.role == Role::User {\n            return Some(index);\n        }\n    }\n    None\n}\n"),
    ("JSON", 41, "{\"id\":\"call_7\",\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\": \\\"src/lib.rs\\\", \\\"offset\\\": 120, \\\"limit\\\": 40}\"}}"),
    ("Chinese", 46, "上下文压缩在不丢失任何内容的前提下，把对话保持在模型的窗口之内：离开窗口的内容仍然保存在存储里，模型可以凭引用再次读取。"),
    ("Korean", 47, "압축기는 아무것도 잃지 않고 대화를 모델의 컨텍스트 창 안에 유지합니다. 창을 벗어난 내용은 저장소에 남아 있으며 모델은 참조로 다시 요청할 수 있습니다."),
    ("Japanese", 60, "圧縮器は、何も失うことなく会話をモデルのコンテキストウィンドウに収めます。ウィンドウから外れた内容はストアに残り、モデルは参照を使って再び読み出せます。"),
    ("Arabic", 45, "يحافظ الضاغط على المحادثة داخل نافذة سياق النموذج دون أن يفقد شيئا، وما يغادر النافذة يبقى في المخزن ويمكن للنموذج أن يطلبه مرة أخرى."),
    ("Hindi", 50, "यह उपकरण बातचीत को मॉडल की संदर्भ खिड़की के भीतर रखता है और कुछ भी नहीं खोता। जो खिड़की से बाहर जाता है वह भंडार में रहता है और मॉडल उसे फिर से माँग सकता है।"),
    ("Thai", 57, "เครื่องมือนี้เก็บบทสนทนาไว้ในหน้าต่างบริบทของแบบจำลองโดยไม่สูญเสียสิ่งใด สิ่งที่ออกจากหน้าต่างยังคงอยู่ในที่เก็บและแบบจำลองสามารถขออ่านได้อีกครั้ง"),
    ("emoji", 32, "🎉 Shipped! 🚀 Tests are green ✅ and the bundle is smaller 📦. Thanks everyone 🙏❤️ — next: the demo 👀🔥"),
    ("base64", 61, "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"),
    ("log", 103, "2026-03-04T09:15:27.113Z INFO  http request finished method=GET path=/api/sessions/42 status=200 ms=17.4\n2026-03-04T09:15:27.288Z WARN  store retrying put key=off_7k2m attempt=2 delay_ms=250\n2026-03-04T09:15:28.002Z ERROR store put failed: quota exceeded (QuotaExceededError)\n"),
];

/// Each of these texts has a few dozen tokens only: single errors are large, but they do not lean to one side.
#[test]
fn known_texts_are_close_to_their_exact_counts() {
    let estimates = KNOWN.map(|(_, _, known)| Family::O200k.text(known));
    let (mut missed, mut estimated, mut counted) = (0.0, 0, 0);
    for ((name, exact, _), estimate) in KNOWN.into_iter().zip(estimates) {
        assert!(estimate.abs_diff(exact) * 4 <= exact, "{name}: {estimate}, exactly {exact}");
        missed += estimate.abs_diff(exact) as f64 / exact as f64;
        estimated += estimate;
        counted += exact;
    }
    assert!(missed / KNOWN.len() as f64 <= 0.12, "mean error {}", missed / KNOWN.len() as f64);
    assert!(estimated.abs_diff(counted) * 20 <= counted, "{estimated}, exactly {counted}");
}

#[test]
fn every_table_is_whole() {
    for family in Family::ALL {
        let (rows, rest) = family.file().unwrap().split_at(256);
        let columns = &rest[..256];
        assert_eq!(usize::from(*rows.iter().max().unwrap()) + 1, ROWS, "{}", family.name());
        assert_eq!(usize::from(*columns.iter().max().unwrap()) + 1, COLUMNS, "{}", family.name());
    }
}

#[test]
fn z6_a_table_of_another_length_is_refused_and_one_that_is_there_stays() {
    let (pairs, contexts, runs) = (vec![1; PAIRS], vec![1; CONTEXTS], vec![1; RUNS]);
    assert!(!Family::Gemini.bring(&pairs[1..], &contexts, &runs));
    assert!(!Family::Gemini.bring(&pairs, &contexts[1..], &runs));
    assert!(!Family::Gemini.bring(&pairs, &contexts, &runs[1..]));
    assert!(!Family::Gemini.bring(&[], &[], &[]));
    let before = Family::Gemini.text("one");
    assert!(Family::Gemini.is_there() && Family::Gemini.bring(&pairs, &contexts, &runs));
    assert_eq!(Family::Gemini.text("one"), before);
}

#[test]
fn empty_is_nothing_and_anything_is_something() {
    for family in Family::ALL {
        assert_eq!(family.text(""), 0);
        for some in [" ", "\0", "a", "\u{200d}", "字", "\u{10ffff}"] {
            assert!(family.text(some) >= 1, "{some:?}");
        }
    }
}

/// What the page says, byte by byte, without the layout: in `1 / RUN_SCALE` tokens.
fn by_definition(family: Family, bytes: &[u8]) -> u64 {
    let (rows, rest) = family.file().unwrap().split_at(256);
    let (columns, rest) = rest.split_at(256);
    let (weights, rest) = rest.split_at(ROWS * COLUMNS);
    let (contexts, runs) = rest.split_at(CONTEXTS);
    let padded = [&[0, 0, 0], bytes].concat();
    let mut run = 0;
    let weight = |last: &[u8; 4]| {
        let &[third, before, one, byte] = last;
        let same = if byte < 0x80 { one } else { third };
        run = if byte == same { run + 1 } else { 0 };
        if run >= 7 {
            let [first, second, last] = [before, one, byte].map(u32::from);
            let at = if byte < 0x80 { last } else { 128 + (13 * first + 118 * second + last) % 128 };
            let weight = runs.as_chunks::<2>().0[at as usize];
            return if byte >= 0x80 && before < 0xe0 { 0 } else { u64::from(u16::from_le_bytes(weight)) };
        }
        let pair = usize::from(rows[usize::from(one)]) * COLUMNS + usize::from(columns[usize::from(byte)]);
        let context =
            last.iter().fold(0, |context, byte| context * 8 + usize::from(CLASSES[usize::from(*byte)]));
        16 * (u64::from(weights[pair]) + u64::from(contexts[context]))
    };
    padded.array_windows().map(weight).sum()
}

#[test]
fn fifty_megabytes_cost_their_sum() {
    let mebibyte = "The quick brown fox. 敏捷的狐狸。".repeat(1 << 15);
    let table = Family::O200k.table();
    let (first, end) = units(table, End::default(), mebibyte.as_bytes());
    let (rest, _) = units(table, end, mebibyte.as_bytes());
    let all = mebibyte.repeat(40);
    assert!(all.len() > 50_000_000);
    assert_eq!(units(table, End::default(), all.as_bytes()).0, first + 39 * rest);
}

/// Texts of runs, and of what nearly is one.
fn runs() -> impl Strategy<Value = String> {
    let sign =
        prop::sample::select("=- \n0a\u{e9}\u{2500}\u{2588}\u{4e00}\u{1f44d}\0".chars().collect::<Vec<_>>());
    let run = (sign, 1..24_usize).prop_map(|(sign, times)| sign.to_string().repeat(times));
    prop::collection::vec(run, 0..8).prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn p22_runs_cost_the_same_in_parts(text in runs(), at in 0..600_usize) {
        for family in Family::ALL {
            let (head, tail) = text.as_bytes().split_at(at.min(text.len()));
            let (mut whole, mut parts) = (Sum::default(), Sum::default());
            whole.add(family.table(), text.as_bytes());
            parts.add(family.table(), head);
            parts.add(family.table(), tail);
            prop_assert_eq!(whole, parts);
            prop_assert_eq!(whole.units, by_definition(family, text.as_bytes()));
        }
    }

    #[test]
    fn counts_by_definition(text: String, bytes: Vec<u8>) {
        for family in Family::ALL {
            for bytes in [text.as_bytes(), &bytes] {
                prop_assert_eq!(units(family.table(), End::default(), bytes).0, by_definition(family, bytes));
            }
        }
    }

    #[test]
    fn appended_text_adds_its_own_sum(head: Vec<u8>, tail: Vec<u8>) {
        for family in Family::ALL {
            let (mut whole, mut parts) = (Sum::default(), Sum::default());
            whole.add(family.table(), &[head.as_slice(), &tail].concat());
            parts.add(family.table(), &head);
            parts.add(family.table(), &tail);
            prop_assert_eq!(whole, parts);
        }
    }

    #[test]
    fn grows_with_the_text(head: String, tail: String) {
        let joined = [head.as_str(), tail.as_str()].concat();
        for family in Family::ALL {
            prop_assert!(family.text(&joined) >= family.text(&head));
            // Each of a byte's two weights is less than four tokens.
            prop_assert!(family.text(&joined) <= joined.len() * 8);
        }
    }
}
