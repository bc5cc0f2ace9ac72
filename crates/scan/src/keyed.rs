//! Texts as numbers that tell them apart.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};

/// Numbers of texts that nobody can foretell: they need not be hashed again.
pub type Numbers = HashSet<u64, BuildHasherDefault<AsItIs>>;

/// The hash of a number that is one.
#[derive(Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The number of a text, which nobody can foretell who does not know the key.
pub fn keyed(key: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key.as_bytes());
    hasher.write_u8(0xFF);
    hasher.write(text.as_bytes());
    hasher.finish()
}
