//! Keys in a configuration. A text holds no byte beyond ASCII that is not a character, so a key is written as errors print it:
//! `\xff` is a byte, `\\` a backslash.

/// The key that a text means.
///
/// # Errors
/// What a backslash may stand before, in words.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            key.push(*byte);
            continue;
        }
        let (meant, length) = match rest {
            [b'x', high, low, ..] => (hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low), 3),
            [b't', ..] => (Some(b'\t'), 1),
            [b'r', ..] => (Some(b'\r'), 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [own @ (b'\\' | b'\'' | b'"'), ..] => (Some(*own), 1),
            _ => (None, 0),
        };
        key.push(meant.ok_or_else(|| {
            r#"a backslash stands before \, ', ", t, r, n or x and two hex digits"#.to_owned()
        })?);
        rest = &rest[length..];
    }
    Ok(key)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_is_read_as_errors_print_it(key in any::<Vec<u8>>()) {
            prop_assert_eq!(unescape(&key.escape_ascii().to_string()), Ok(key));
        }

        #[test]
        fn a_text_without_backslashes_is_its_own_bytes(text in "[^\\\\]*") {
            prop_assert_eq!(unescape(&text), Ok(text.into_bytes()));
        }
    }

    #[test]
    fn a_backslash_that_stands_for_nothing_is_refused() {
        for bad in [r"\", r"\x", r"\xf", r"\xg0", r"a\q", r"\xé"] {
            assert!(unescape(bad).unwrap_err().contains("hex digits"), "{bad}");
        }
    }
}
