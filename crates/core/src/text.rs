//! Parts of texts.

use unicode_segmentation::UnicodeSegmentation;

/// A number with a comma between its thousands, whatever the locale: who reads it may be a program or a model.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 result`, `1,200 results`.
pub(crate) fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { more })
}

/// Characters `offset .. offset + limit`. The end moves back to a grapheme boundary, but for a first cluster that is
/// longer than the limit, so that reading on always gets further.
pub(crate) fn range(text: &str, offset: usize, limit: Option<usize>) -> String {
    let start = text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
    let rest = text.get(start..).unwrap_or_default();
    let Some(limit) = limit else { return rest.to_string() };
    let mut taken = 0;
    let fits = |cluster: &&str| {
        let is_first = taken == 0;
        taken += cluster.chars().count();
        is_first || taken <= limit
    };
    rest.graphemes(true).take_while(fits).collect()
}
