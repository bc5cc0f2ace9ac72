//! Records as JSON text. A record has a table of its fields ([`record!`](crate::record!)); one reader and one writer serve all of
//! them, where what is derived would be code for each field of each.

mod json;
mod values;

pub use json::{Json, Unreadable};
pub use values::{Raw, read_name, write_name};

use serde_json::{Map, Value};

/// What a record can have as a field, read from JSON.
pub trait ReadJson<'a>: Sized {
    /// Reads the value that comes next.
    ///
    /// Errors: it is none of this type.
    fn read(json: &mut Json<'a>) -> Result<Self, Unreadable>;
}

/// What a record can have as a field, written as JSON.
pub trait WriteJson {
    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);

    /// It is what a field that is left out stands for.
    fn is_nothing(&self) -> bool {
        false
    }
}

/// A record, from all of `text`.
///
/// Errors: the text is no JSON, or not this record.
pub fn from_str<'a, T: ReadJson<'a>>(text: &'a str) -> Result<T, Unreadable> {
    T::read(&mut Json::of(text)?)
}

/// A record as JSON text.
pub fn to_vec(record: &impl WriteJson) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    record.write(&mut out);
    out
}

/// A record as JSON text.
pub fn to_text(record: &impl WriteJson) -> String {
    String::from_utf8_lossy(&to_vec(record)).into_owned()
}

/// A record has a table of its fields: their names in JSON, and for some what a missing one means.
///
/// * `= "name"`: it is always there.
/// * `= "name" or default`: it is always written; a missing one is the type's default.
/// * `= "name" or nothing`: the same, and it is left out where it [is nothing](crate::record::WriteJson::is_nothing).
///
/// `.. rest` is a map of the fields that the table does not name; without it they are passed over. `nothing if` names a method that
/// says whether the record as a whole is what a missing one stands for.
#[macro_export]
macro_rules! record {
    ($type:ident<$life:lifetime> { $($body:tt)* } $($nothing:tt)*) => {
        $crate::record!(@ $type, [$type<'_>], $life, [$type<$life>] { $($body)* } $($nothing)*);
    };
    ($type:ident { $($body:tt)* } $($nothing:tt)*) => {
        $crate::record!(@ $type, [$type], 'a, [$type] { $($body)* } $($nothing)*);
    };
    (@ $name:ident, [$written:ty], $life:lifetime, [$read:ty]
        { $($field:ident = $key:literal $(or $missing:ident)?),* $(,)? $(.. $rest:ident)? } $(nothing if $nothing:ident)?) => {
        impl $crate::record::WriteJson for $written {
            fn write(&self, out: &mut Vec<u8>) {
                let $name { $($field,)* $($rest)? } = self;
                $crate::write_fields!(out, [$($field = $key $(or $missing)?),*] $($rest)?);
            }

            $(fn is_nothing(&self) -> bool {
                self.$nothing()
            })?
        }

        impl<$life> $crate::record::ReadJson<$life> for $read {
            fn read(json: &mut $crate::record::Json<$life>) -> Result<Self, $crate::record::Unreadable> {
                $crate::read_fields!(json, $name, [$($field = $key $(or $missing)?),*] $($rest)?)
            }
        }
    };
}

/// Writes fields that are in scope as references.
#[doc(hidden)]
#[macro_export]
macro_rules! write_fields {
    ($out:expr, [$($field:ident = $name:literal $(or $missing:ident)?),*] $($rest:ident)?) => {
        $crate::record::write_fields(
            $out,
            &[$(($name, $field as &dyn $crate::record::WriteJson, $crate::is_left_out!($($missing)?))),*],
            $crate::rest_of!($($rest)?),
        )
    };
}

/// Reads fields and makes `$made` of them.
#[doc(hidden)]
#[macro_export]
macro_rules! read_fields {
    ($json:expr, $($made:ident)::+, [$($field:ident = $name:literal $(or $missing:ident)?),*] $($rest:ident)?) => {{
        $(let mut $field = None;)*
        $(let mut $rest = serde_json::Map::new();)?
        $crate::record::read_fields(
            $json,
            &mut [$(($name, &mut $field as &mut dyn $crate::record::Slot<'_>)),*],
            $crate::rest_of!($(mut $rest)?),
        )?;
        Ok($($made)::+ { $($field: $crate::taken!($field, $name $(, $missing)?),)* $($rest)? })
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! is_left_out {
    (nothing) => {
        true
    };
    ($($other:ident)?) => {
        false
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! rest_of {
    () => {
        None
    };
    (mut $rest:ident) => {
        Some(&mut $rest)
    };
    ($rest:ident) => {
        Some($rest)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! taken {
    ($field:ident, $name:literal) => {
        $field.ok_or_else(|| $crate::record::Unreadable::missing($name))?
    };
    ($field:ident, $name:literal, $missing:ident) => {
        $field.unwrap_or_default()
    };
}

/// Where the value of a field goes.
#[doc(hidden)]
pub trait Slot<'a> {
    fn fill(&mut self, json: &mut Json<'a>) -> Result<(), Unreadable>;
    fn is_filled(&self) -> bool;
}

impl<'a, T: ReadJson<'a>> Slot<'a> for Option<T> {
    fn fill(&mut self, json: &mut Json<'a>) -> Result<(), Unreadable> {
        *self = Some(T::read(json)?);
        Ok(())
    }

    fn is_filled(&self) -> bool {
        self.is_some()
    }
}

#[doc(hidden)]
pub fn read_fields<'a>(
    json: &mut Json<'a>,
    fields: &mut [(&'static str, &mut dyn Slot<'a>)],
    mut rest: Option<&mut Map<String, Value>>,
) -> Result<(), Unreadable> {
    json.object(&mut |key, json| {
        match fields.iter_mut().find(|(name, _)| *name == key) {
            Some((name, slot)) if slot.is_filled() => return Err(Unreadable::twice(name)),
            Some((name, slot)) => slot.fill(json).map_err(|error| error.inside(name))?,
            None => {
                let value = json.raw();
                if let Some(rest) = &mut rest {
                    rest.insert(key.into(), serde_json::from_str(value).map_err(Unreadable::of_json)?);
                }
            }
        }
        Ok(())
    })
}

#[doc(hidden)]
pub fn write_fields(
    out: &mut Vec<u8>,
    fields: &[(&'static str, &dyn WriteJson, bool)],
    rest: Option<&Map<String, Value>>,
) {
    let mut before = b'{';
    for (name, value, is_left_out) in fields {
        if *is_left_out && value.is_nothing() {
            continue;
        }
        out.push(before);
        before = b',';
        // Names of fields need no escapes.
        json::quoted(name, out);
        out.push(b':');
        value.write(out);
    }
    for (name, value) in rest.into_iter().flatten() {
        out.push(before);
        before = b',';
        name.write(out);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
    }
    if before == b'{' {
        out.push(before);
    }
    out.push(b'}');
}

/// An object of one field, whose name says what its value is.
pub fn write_variant(out: &mut Vec<u8>, name: &str, value: &mut dyn FnMut(&mut Vec<u8>)) {
    out.push(b'{');
    json::quoted(name, out);
    out.push(b':');
    value(out);
    out.push(b'}');
}

#[cfg(test)]
mod tests;
