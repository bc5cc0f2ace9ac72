//! What is kept of a conversation as bytes: fields one after the other, without their names. Its reader never fails: what is
//! not there reads as nothing, and the reader knows it at the end.

use crate::context::Place;
use crate::keys::varint;
use crate::wire::order;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::rc::Rc;

/// Bytes that are being read.
pub(crate) struct StoredReader<'b> {
    rest: &'b [u8],
    is_whole: bool,
}

impl<'b> StoredReader<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Self {
        StoredReader { rest: bytes, is_whole: true }
    }

    /// All that was read was there, and nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_whole && self.rest.is_empty()
    }

    pub(super) fn number(&mut self) -> u64 {
        let number = varint::read(&mut self.rest);
        self.is_whole &= number.is_some();
        number.unwrap_or_default()
    }

    /// How many values come next: each has a byte at least.
    fn count(&mut self) -> usize {
        let count = self.number();
        let most = self.rest.len();
        self.is_whole &= count <= most as u64;
        most.min(usize::try_from(count).unwrap_or(most))
    }

    fn text(&mut self) -> &'b str {
        let bytes = self.count();
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or_default();
        self.rest = rest;
        let text = std::str::from_utf8(text);
        self.is_whole &= text.is_ok();
        text.unwrap_or_default()
    }
}

/// What is stored as bytes.
pub(super) trait AsBytes: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(from: &mut StoredReader<'_>) -> Self;
}

/// A type is stored field by field; those behind `apart` are not, and are read as nothing.
macro_rules! stored {
    ($type:ident { $($field:ident),* $(,)? } $(apart { $($apart:ident),* })?) => {
        impl $crate::summary::keep::stored::AsBytes for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let $type { $($field,)* $($($apart: _,)*)? } = self;
                $($crate::summary::keep::stored::AsBytes::write($field, out);)*
            }

            fn read(from: &mut $crate::summary::keep::stored::StoredReader<'_>) -> Self {
                $type {
                    $($field: $crate::summary::keep::stored::AsBytes::read(from),)*
                    $($($apart: Default::default(),)*)?
                }
            }
        }
    };
}

/// Values of a few, the first where it is none of them.
macro_rules! stored_as_numbers {
    ($type:ident { $first:ident $(, $variant:ident)* $(,)? }) => {
        impl $crate::summary::keep::stored::AsBytes for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn read(from: &mut $crate::summary::keep::stored::StoredReader<'_>) -> Self {
                match from.number() {
                    $(number if number == $type::$variant as u64 => $type::$variant,)*
                    _ => $type::$first,
                }
            }
        }
    };
}

pub(super) use {stored, stored_as_numbers};

stored!(Place { seq, index });

macro_rules! numbers {
    ($($type:ty)*) => {
        $(
            impl AsBytes for $type {
                fn write(&self, out: &mut Vec<u8>) {
                    varint::write(out, *self as u64);
                }

                fn read(from: &mut StoredReader<'_>) -> Self {
                    from.number() as $type
                }
            }
        )*
    };
}
numbers!(u32 u64 usize);

impl AsBytes for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        from.number() > 0
    }
}

impl AsBytes for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        varint::write(out, self.to_bits());
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        f64::from_bits(from.number())
    }
}

macro_rules! texts {
    ($($type:ty)*) => {
        $(
            impl AsBytes for $type {
                fn write(&self, out: &mut Vec<u8>) {
                    write_text(self, out);
                }

                fn read(from: &mut StoredReader<'_>) -> Self {
                    from.text().into()
                }
            }
        )*
    };
}
texts!(String Box<str> Rc<str>);

fn write_text(text: &str, out: &mut Vec<u8>) {
    varint::write(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

impl<T: AsBytes> AsBytes for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        self.iter().for_each(|value| value.write(out));
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        (from.number() > 0).then(|| T::read(from))
    }
}

/// Values that are counted first.
pub(super) fn write_all<'v, T: AsBytes + 'v>(
    values: impl ExactSizeIterator<Item = &'v T>,
    out: &mut Vec<u8>,
) {
    varint::write(out, values.len() as u64);
    values.for_each(|value| value.write(out));
}

macro_rules! lists {
    ($($type:ty)*) => {
        $(
            impl<T: AsBytes> AsBytes for $type {
                fn write(&self, out: &mut Vec<u8>) {
                    write_all(self.iter(), out);
                }

                fn read(from: &mut StoredReader<'_>) -> Self {
                    (0..from.count()).map(|_| T::read(from)).collect()
                }
            }
        )*
    };
}
lists!(Vec<T> VecDeque<T> Box<[T]>);

impl<T: AsBytes + Default + Copy, const N: usize> AsBytes for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(out));
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        [T::default(); N].map(|_| T::read(from))
    }
}

impl<T: AsBytes + Ord + Hash> AsBytes for HashSet<T> {
    /// In order, so that equal sets are equal bytes.
    fn write(&self, out: &mut Vec<u8>) {
        let mut values: Vec<&T> = self.iter().collect();
        order::sort(&mut values, |one, other| one < other);
        write_all(values.into_iter(), out);
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        (0..from.count()).map(|_| T::read(from)).collect()
    }
}

impl<K: AsBytes + Ord + Hash, V: AsBytes> AsBytes for HashMap<K, V> {
    /// In the order of the keys.
    fn write(&self, out: &mut Vec<u8>) {
        let mut values: Vec<(&K, &V)> = self.iter().collect();
        order::sort(&mut values, |one, other| one.0 < other.0);
        varint::write(out, values.len() as u64);
        for (key, value) in values {
            key.write(out);
            value.write(out);
        }
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        (0..from.count()).map(|_| (K::read(from), V::read(from))).collect()
    }
}

impl<A: AsBytes, B: AsBytes> AsBytes for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        (A::read(from), B::read(from))
    }
}
