//! Many phrases looked for in one pass.

/// Phrases by the byte that they begin with.
#[derive(Debug)]
pub struct Phrases {
    by_first: Vec<Vec<&'static str>>,
}

impl Phrases {
    /// These phrases, none of them empty.
    pub fn new(phrases: &[&'static str]) -> Self {
        let mut by_first = vec![Vec::new(); 256];
        for phrase in phrases {
            let first = phrase.bytes().next().and_then(|byte| by_first.get_mut(usize::from(byte)));
            first.into_iter().for_each(|of| of.push(*phrase));
        }
        Phrases { by_first }
    }

    /// True when one of them stands in `text`.
    pub fn is_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        bytes.iter().enumerate().any(|(at, byte)| {
            let of = self.by_first.get(usize::from(*byte)).map_or(&[][..], Vec::as_slice);
            !of.is_empty() && {
                let rest = bytes.get(at..).unwrap_or_default();
                of.iter().any(|phrase| rest.starts_with(phrase.as_bytes()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_anywhere() {
        let phrases = Phrases::new(&["do not", "don’t", "不要"]);
        for text in ["do not", "you do not", "I don’t.", "请不要提交", "dodo not"] {
            assert!(phrases.is_in(text), "{text}");
        }
        for text in ["", "do no", "donot", "不", "要不"] {
            assert!(!phrases.is_in(text), "{text}");
        }
    }
}
