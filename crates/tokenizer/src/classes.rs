//! What the splitting rules know of a character: its class.

/// A class of characters. Letters are of three kinds, because o200k cuts words where case changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Anything that has no class of its own: punctuation, symbols, controls, what is not assigned.
    Other,
    /// `\p{Lu}`, `\p{Lt}`.
    Upper,
    /// `\p{Ll}`.
    Lower,
    /// `\p{Lm}`, `\p{Lo}`: letters without case.
    Letter,
    /// `\p{M}`: no letter, but part of words in o200k.
    Mark,
    /// `\p{N}`.
    Number,
    /// `\s` without the two of `Newline`.
    Space,
    /// `\r`, `\n`.
    Newline,
    /// There is no character: the text has ended.
    End,
}

impl Class {
    fn from_number(number: u8) -> Self {
        match number {
            1 => Class::Upper,
            2 => Class::Lower,
            3 => Class::Letter,
            4 => Class::Mark,
            5 => Class::Number,
            6 => Class::Space,
            7 => Class::Newline,
            _ => Class::Other,
        }
    }

    /// `\p{L}`.
    pub(crate) fn is_letter(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Letter)
    }

    /// `[^\s\p{L}\p{N}]`.
    pub(crate) fn is_symbol(self) -> bool {
        matches!(self, Class::Other | Class::Mark)
    }
}

/// Written by `build.rs`.
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/blocks.bin"));
static CLASSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));
static ASCII: &[u8; 128] = include_bytes!(concat!(env!("OUT_DIR"), "/ascii.bin"));

/// The class of an ASCII character.
#[inline(always)]
pub(crate) fn ascii(byte: u8) -> Class {
    Class::from_number(ASCII[usize::from(byte & 0x7f)])
}

/// The class of a character by its code point.
#[inline]
pub(crate) fn of(code: u32) -> Class {
    let block = BLOCKS.get((code >> 8) as usize).copied().unwrap_or_default();
    let pair =
        CLASSES.get((usize::from(block) << 7) | (code as usize & 0xff) >> 1).copied().unwrap_or_default();
    Class::from_number(if code & 1 == 0 { pair & 15 } else { pair >> 4 })
}
