//! The character estimate of the documents (`S3.11`).

/// `round(characters / 4)`, ties up. Characters are Unicode scalar values.
pub(super) fn text(text: &str) -> usize {
    (text.chars().count() + 2) / 4
}

#[cfg(test)]
mod tests {
    #[test]
    fn s3_11_rounds_with_ties_up() {
        let lengths: Vec<usize> = (0..9).map(|n| super::text(&"x".repeat(n))).collect();
        assert_eq!(lengths, [0, 0, 1, 1, 1, 1, 2, 2, 2]);
    }
}
