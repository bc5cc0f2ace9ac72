//! The calibrated estimate: a sum of weights over pairs of adjacent bytes.
//!
//! `tokens(text) = Σ W[row(previous byte)][column(byte)] / 128`, with 104 rows and 93 columns: bytes that behave alike
//! share one. The table, `o200k.bin`, is fitted to exact o200k counts of text in 22 classes of content and 29
//! scripts, and written by `bench/fit` (never by hand): a map of 256 bytes to rows, one of 256 bytes to columns, then
//! the weights row by row, a byte each.
//!
//! One pass, no allocation, integers only: the same figure on every platform. Weights are not negative, so an
//! estimate never falls when text is appended, and the estimate of appended text is the sum over its own bytes.

const TABLE: &[u8; 10_184] = include_bytes!("o200k.bin");
const COLUMNS: usize = 93;
/// Units of a weight in one token.
const SCALE: u64 = 128;
/// The byte "before" the first one. Text hardly ever has a NUL, so the fit uses its row for this.
const START: u8 = 0;

/// Estimated tokens of a text: 0 for the empty text, at least 1 for any other.
pub(super) fn text(text: &str) -> usize {
    if text.is_empty() {
        return 0;
    }
    let tokens = (units(START, text.as_bytes()) + SCALE / 2) / SCALE;
    usize::try_from(tokens).unwrap_or(usize::MAX).max(1)
}

/// Weight of `bytes` where `previous` stands before them. A weight is a byte: 2^56 bytes of text cannot overflow.
fn units(mut previous: u8, bytes: &[u8]) -> u64 {
    let (rows, rest) = TABLE.split_at(256);
    let (columns, weights) = rest.split_at(256);
    let look_up = |table: &[u8], at: usize| table.get(at).copied().unwrap_or_default();
    let mut sum = 0;
    for &byte in bytes {
        let row = usize::from(look_up(rows, usize::from(previous)));
        let column = usize::from(look_up(columns, usize::from(byte)));
        sum += u64::from(look_up(weights, row * COLUMNS + column));
        previous = byte;
    }
    sum
}

#[cfg(test)]
mod tests {
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
        let estimates = KNOWN.map(|(_, _, known)| text(known));
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
    fn the_table_is_whole() {
        let (rows, rest) = TABLE.split_at(256);
        let (columns, weights) = rest.split_at(256);
        let highest = |map: &[u8]| usize::from(*map.iter().max().unwrap());
        assert_eq!(highest(columns) + 1, COLUMNS);
        assert_eq!((highest(rows) + 1) * COLUMNS, weights.len());
    }

    #[test]
    fn empty_is_nothing_and_anything_is_something() {
        assert_eq!(text(""), 0);
        for some in [" ", "\0", "a", "\u{200d}", "字", "\u{10ffff}"] {
            assert!(text(some) >= 1, "{some:?}");
        }
    }

    #[test]
    fn fifty_megabytes_cost_their_sum() {
        let mebibyte = "The quick brown fox. 敏捷的狐狸。".repeat(1 << 15);
        let rest = units(b'\x82', mebibyte.as_bytes());
        let all = mebibyte.repeat(40);
        assert!(all.len() > 50_000_000);
        assert_eq!(units(START, all.as_bytes()), units(START, mebibyte.as_bytes()) + 39 * rest);
    }

    proptest! {
        #[test]
        fn appended_text_adds_its_own_sum(head in ".+", tail in ".*") {
            let joined = [head.as_str(), tail.as_str()].concat();
            let last = head.as_bytes().last().copied().unwrap();
            let sum = units(START, head.as_bytes()) + units(last, tail.as_bytes());
            prop_assert_eq!(units(START, joined.as_bytes()), sum);
        }

        #[test]
        fn grows_with_the_text(head in any::<String>(), tail in any::<String>()) {
            let joined = [head.as_str(), tail.as_str()].concat();
            prop_assert!(text(&joined) >= text(&head));
            prop_assert!(text(&joined) <= joined.len() * 2);
        }
    }
}
