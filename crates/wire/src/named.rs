//! Values of a few, stored and reported by their names.

use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

/// Writes and reads the variants of `$type` as their names, in a tenth of the code that is derived for it.
#[macro_export]
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match self {
                    $($type::$variant => $name,)*
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let variants = [$($type::$variant),*];
                let place = $crate::named::place(deserializer, &[$($name),*])?;
                variants.get(place).copied().ok_or_else(|| serde::de::Error::custom("no such name"))
            }
        }

        impl $crate::record::WriteJson for $type {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::record::write_name(match self { $($type::$variant => $name,)* }, out);
            }

            fn is_nothing(&self) -> bool {
                *self as usize == 0
            }
        }

        impl $crate::record::ReadJson<'_> for $type {
            fn read(json: &mut $crate::record::Json<'_>) -> Result<Self, $crate::record::Unreadable> {
                let variants = [$($type::$variant),*];
                let place = $crate::record::read_name(json, &[$($name),*])?;
                variants.get(place).copied().ok_or_else(|| $crate::record::Unreadable::no("name of a few"))
            }
        }
    };
}

/// Which of `names` is read.
///
/// Errors: none of them.
pub fn place<'de, D: Deserializer<'de>>(deserializer: D, names: &[&str]) -> Result<usize, D::Error> {
    struct KnownNames<'n>(&'n [&'n str]);

    impl Visitor<'_> for KnownNames<'_> {
        type Value = usize;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a name of a few")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
            self.0.iter().position(|known| *known == name).ok_or_else(|| E::custom("no such name"))
        }
    }

    deserializer.deserialize_str(KnownNames(names))
}

#[cfg(test)]
mod tests {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Size {
        Small,
        VeryLarge,
    }
    named!(Size { Small = "small", VeryLarge = "veryLarge" });

    /// Z10: a name is written and read as what is derived does, and no other is one.
    #[test]
    fn names_are_read_and_written() {
        for (size, text) in [(Size::Small, r#""small""#), (Size::VeryLarge, r#""veryLarge""#)] {
            assert_eq!(serde_json::to_string(&size).unwrap(), text);
            assert_eq!(serde_json::from_str::<Size>(text).unwrap(), size);
            assert_eq!(serde_json::from_value::<Size>(serde_json::to_value(size).unwrap()).unwrap(), size);
        }
        for text in [r#""Small""#, r#""""#, "1", "null", "[]", r#"{"small":null}"#] {
            assert!(serde_json::from_str::<Size>(text).unwrap_err().is_data(), "{text}");
        }
    }
}
