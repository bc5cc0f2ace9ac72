//! Values of fields.

use super::{Json, ReadJson, Unreadable, WriteJson};
use serde_json::value::RawValue;
use std::io::Write as _;
use std::rc::Rc;

macro_rules! numbers {
    ($($type:ty)*) => {
        $(
            impl ReadJson<'_> for $type {
                fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
                    json.raw().parse().map_err(|_| Unreadable::no("number of its kind"))
                }
            }

            impl WriteJson for $type {
                fn write(&self, out: &mut Vec<u8>) {
                    // What is written into memory does not fail.
                    let _ = write!(out, "{self}");
                }

                fn is_nothing(&self) -> bool {
                    *self == 0
                }
            }
        )*
    };
}
numbers!(u8 u32 u64 usize);

impl ReadJson<'_> for bool {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        json.raw().parse().map_err(|_| Unreadable::no("yes or no"))
    }
}

impl WriteJson for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn is_nothing(&self) -> bool {
        !self
    }
}

impl ReadJson<'_> for String {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        Ok(json.string()?.into_owned())
    }
}

impl WriteJson for String {
    fn write(&self, out: &mut Vec<u8>) {
        // A string that is written into memory does not fail.
        let _ = serde_json::to_writer(out, self);
    }

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<'a, T: ReadJson<'a>> ReadJson<'a> for Option<T> {
    fn read(json: &mut Json<'a>) -> Result<Self, Unreadable> {
        if json.takes_null() { Ok(None) } else { T::read(json).map(Some) }
    }
}

impl<T: WriteJson> WriteJson for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

impl<'a, T: ReadJson<'a>> ReadJson<'a> for Vec<T> {
    fn read(json: &mut Json<'a>) -> Result<Self, Unreadable> {
        let mut values = Vec::new();
        json.array(&mut |json| {
            values.push(T::read(json)?);
            Ok(())
        })?;
        Ok(values)
    }
}

impl<T: WriteJson> WriteJson for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        list(&mut self.iter().map(|value| value as &dyn WriteJson), out);
    }

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

fn list(values: &mut dyn Iterator<Item = &dyn WriteJson>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (nth, value) in values.enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        value.write(out);
    }
    out.push(b']');
}

macro_rules! tuples {
    ($(($($name:ident: $type:ident),*))*) => {
        $(
            impl<'a, $($type: ReadJson<'a>),*> ReadJson<'a> for ($($type,)*) {
                fn read(json: &mut Json<'a>) -> Result<Self, Unreadable> {
                    $(let mut $name = None;)*
                    let mut slots = [$(&mut $name as &mut dyn super::Slot<'a>),*].into_iter();
                    json.array(&mut |json| slots.next().ok_or_else(|| Unreadable::no("list of so many"))?.fill(json))?;
                    drop(slots);
                    Ok(($($name.ok_or_else(|| Unreadable::no("list of so many"))?,)*))
                }
            }

            impl<$($type: WriteJson),*> WriteJson for ($($type,)*) {
                fn write(&self, out: &mut Vec<u8>) {
                    let ($($name,)*) = self;
                    list(&mut [$($name as &dyn WriteJson),*].into_iter(), out);
                }
            }
        )*
    };
}
tuples!((one: A, two: B) (one: A, two: B, three: C) (one: A, two: B, three: C, four: D, five: E, six: F));

macro_rules! pointers {
    ($($type:ident)*) => {
        $(
            impl<'a, T: ReadJson<'a>> ReadJson<'a> for $type<T> {
                fn read(json: &mut Json<'a>) -> Result<Self, Unreadable> {
                    T::read(json).map($type::new)
                }
            }

            impl<T: WriteJson> WriteJson for $type<T> {
                fn write(&self, out: &mut Vec<u8>) {
                    (**self).write(out);
                }

                fn is_nothing(&self) -> bool {
                    (**self).is_nothing()
                }
            }
        )*
    };
}
pointers!(Box Rc);

/// A value that is kept as it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Rc<str>);

impl ReadJson<'_> for Raw {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        Ok(Raw(json.raw().into()))
    }
}

impl WriteJson for Raw {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

impl<'a> ReadJson<'a> for &'a RawValue {
    fn read(json: &mut Json<'a>) -> Result<Self, Unreadable> {
        serde_json::from_str(json.raw()).map_err(Unreadable::of_json)
    }
}

impl WriteJson for &RawValue {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.get().as_bytes());
    }
}

/// What is read and written as `serde` has it.
#[macro_export]
macro_rules! record_by_serde {
    ($($type:ty),*) => {
        $(
            impl $crate::record::ReadJson<'_> for $type {
                fn read(json: &mut $crate::record::Json<'_>) -> Result<Self, $crate::record::Unreadable> {
                    json.by_serde()
                }
            }

            impl $crate::record::WriteJson for $type {
                fn write(&self, out: &mut Vec<u8>) {
                    // What is written into memory does not fail.
                    let _ = serde_json::to_writer(out, self);
                }
            }
        )*
    };
}
record_by_serde!(serde_json::Map<String, serde_json::Value>);

/// Appends a name, which needs no escapes.
#[doc(hidden)]
pub fn write_name(name: &str, out: &mut Vec<u8>) {
    super::json::quoted(name, out);
}

/// Which of `names` comes next.
///
/// Errors: none of them.
#[doc(hidden)]
pub fn read_name(json: &mut Json<'_>, names: &[&str]) -> Result<usize, Unreadable> {
    let name = json.string()?;
    names.iter().position(|known| *known == name).ok_or_else(|| Unreadable::no("name of a few"))
}
