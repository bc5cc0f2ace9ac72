//! The size of a picture in base64, by its first bytes: only those that are looked at are decoded.

use super::tagged;
use serde_json_borrow::Value;

/// Width and height of a PNG, GIF, WebP or JPEG in pixels, in base64, in bytes or in a `data:` URL, also within the fields
/// that formats put payloads in. `None` for anything else, and for what only points somewhere.
pub(super) fn pixels(payload: &Value<'_>) -> Option<(u32, u32)> {
    if let Some(base64) = tagged::base64(payload) {
        return Bytes::of(base64)?.pixels();
    }
    if tagged::object(payload).is_some() {
        return ["data", "url"].into_iter().find_map(|key| pixels(tagged::given(payload, key)?));
    }
    let text = payload.as_str()?;
    let base64 = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => text,
    };
    Bytes::of(base64)?.pixels()
}

/// Base64 as its bytes.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

/// Segments of a JPEG before its size: metadata, thumbnails.
const MOST_SEGMENTS: usize = 200;

impl<'a> Bytes<'a> {
    fn of(text: &'a str) -> Option<Self> {
        // The shortest header.
        (text.len() >= 14).then_some(Bytes(text.as_bytes()))
    }

    fn digit(self, at: usize) -> Option<u32> {
        Some(match *self.0.get(at)? {
            digit @ b'A'..=b'Z' => u32::from(digit - b'A'),
            digit @ b'a'..=b'z' => u32::from(digit - b'a') + 26,
            digit @ b'0'..=b'9' => u32::from(digit - b'0') + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    }

    fn byte(self, at: usize) -> Option<u32> {
        let (first, shift) = (at / 3 * 4 + at % 3, at % 3 * 2);
        Some((self.digit(first)? << (shift + 2) | self.digit(first + 1)? >> (4 - shift)) & 0xff)
    }

    /// `length` bytes from `at` on as a number, the first one highest.
    fn big(self, at: usize, length: usize) -> Option<u32> {
        (at..at + length).try_fold(0_u32, |number, at| Some(number << 8 | self.byte(at)?))
    }

    /// The first one lowest.
    fn little(self, at: usize, length: usize) -> Option<u32> {
        (at..at + length).rev().try_fold(0_u32, |number, at| Some(number << 8 | self.byte(at)?))
    }

    fn pixels(self) -> Option<(u32, u32)> {
        match self.big(0, 4)? {
            // PNG: the first chunk.
            0x8950_4e47 => Some((self.big(16, 4)?, self.big(20, 4)?)),
            // GIF8.
            0x4749_4638 => Some((self.little(6, 2)?, self.little(8, 2)?)),
            // RIFF.
            0x5249_4646 => self.webp(),
            start if start >> 8 == 0xff_d8ff => self.jpeg(),
            _ => None,
        }
    }

    fn webp(self) -> Option<(u32, u32)> {
        match self.big(12, 4)? {
            // `VP8 `, `VP8L`, `VP8X`.
            0x5650_3820 => Some((self.little(26, 2)? & 0x3fff, self.little(28, 2)? & 0x3fff)),
            0x5650_384c => {
                let bits = self.little(21, 4)?;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            0x5650_3858 => Some((self.little(24, 3)? + 1, self.little(27, 3)? + 1)),
            _ => None,
        }
    }

    fn jpeg(self) -> Option<(u32, u32)> {
        let mut at = 2;
        for _ in 0..MOST_SEGMENTS {
            let marker = self.big(at, 2)?;
            match marker {
                // Padding.
                0xffff => at += 1,
                // A frame, of whatever coding; C4, C8 and CC are none.
                0xffc0..=0xffcf if !matches!(marker, 0xffc4 | 0xffc8 | 0xffcc) => {
                    return Some((self.big(at + 7, 2)?, self.big(at + 5, 2)?));
                }
                0xff01..=0xfffe => at += 2 + self.big(at + 2, 2)?.max(2) as usize,
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64ct::{Base64, Encoding};
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn of(bytes: &[u8]) -> Option<(u32, u32)> {
        let base64 = Base64::encode_string(bytes);
        let url = format!("data:image/png;base64,{base64}");
        let [plain, url] = [base64, url].map(|text| pixels(&Value::Str(Cow::Owned(text))));
        assert_eq!(plain, url);
        plain
    }

    #[test]
    fn headers_of_every_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\x00\0\0\x02\xd0\x08\x06";
        assert_eq!(of(png), Some((1_280, 720)));
        assert_eq!(of(b"GIF89a\x40\x01\xc8\x00\x80"), Some((320, 200)));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\x00"), Some((320, 240)));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\x00"), Some((320, 240)));
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0"), Some((320, 240)));
        let mut jpeg = b"\xff\xd8\xff\xe1\x20\x02".to_vec();
        // Metadata first, with a thumbnail of its own in it.
        jpeg.extend([0xff, 0xc0].repeat(0x1000));
        jpeg.extend(b"\xff\xff\xdb\x00\x03\x00\xff\xc2\x00\x11\x08\x02\xd0\x05\x00\x03\x01");
        assert_eq!(of(&jpeg), Some((1_280, 720)));
    }

    #[test]
    fn what_is_no_picture_has_no_size() {
        for bytes in
            [&b""[..], b"%PDF-1.7 and more", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WAVEfmt "]
        {
            assert_eq!(of(bytes), None);
        }
        for text in ["https://example.com/a.png", "data:image/png,raw", "not base64 at all!"] {
            assert_eq!(pixels(&Value::Str(Cow::Borrowed(text))), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at(head in prop::sample::select(vec![&b"\x89PNG"[..], b"GIF8", b"RIFF\0\0\0\0WEBPVP8X", b"\xff\xd8\xff\xe0", b""]), tail: Vec<u8>) {
            of(&[head, &tail].concat());
        }
    }
}
