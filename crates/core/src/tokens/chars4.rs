//! The character estimate of the documents (`S3.11`).

/// The count of a text that comes in parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chars4Sum {
    characters: usize,
}

impl Chars4Sum {
    /// Adds what comes next.
    pub fn add(&mut self, bytes: &[u8]) {
        // Each character has one byte that does not go on with another.
        self.characters += bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    }

    /// `round(characters / 4)`, ties up. Characters are Unicode scalar values.
    pub fn tokens(&self) -> usize {
        (self.characters + 2) / 4
    }
}

/// The estimate of a text.
pub(super) fn text(text: &str) -> usize {
    Chars4Sum { characters: text.chars().count() }.tokens()
}

#[cfg(test)]
mod tests {
    #[test]
    fn s3_11_rounds_with_ties_up() {
        let lengths: Vec<usize> = (0..9).map(|n| super::text(&"x".repeat(n))).collect();
        assert_eq!(lengths, [0, 0, 1, 1, 1, 1, 2, 2, 2]);
    }
}
