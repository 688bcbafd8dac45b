//! Reads the stored records byte by byte. Hands `lock` and `write` their fields, or a typed error, never a panic.

use crate::error::Error;

/// The version of both records. Another one is refused, so a newer format is never half understood.
pub(super) const VERSION: u8 = 1;

/// The unread rest of a record.
pub(super) struct Fields<'a> {
    record: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Starts behind the version byte.
    pub(super) fn new(record: &'static str, bytes: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Self { record, rest: bytes };
        match fields.byte()? {
            VERSION => Ok(fields),
            version => Err(fields.corrupt(format_args!("has unknown version {version}"))),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        let (byte, rest) = self.rest.split_first().ok_or_else(|| self.ends_early())?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn timestamp(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(|| self.ends_early())?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A number in seven-bit groups, lowest first, each but the last with its high bit set.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if shift > 0 && byte == 0 || (group << shift) >> shift != group {
                return Err(self.corrupt(format_args!("has a number in another than its one form")));
            }
            number |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.corrupt(format_args!("has a number without an end")))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let len = usize::try_from(self.number()?).map_err(|_| self.ends_early())?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.ends_early())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The last field: a short value where the record has one, else nothing.
    pub(super) fn short_value(self, present: bool) -> Result<Option<Vec<u8>>, Error> {
        match (present, self.rest.len()) {
            (false, 0) => Ok(None),
            (true, 0..=super::SHORT_VALUE_MAX_BYTES) => Ok(Some(self.rest.to_vec())),
            (_, len) => Err(self.corrupt(format_args!("has {len} bytes where its value should be"))),
        }
    }

    pub(super) fn corrupt(&self, what: std::fmt::Arguments<'_>) -> Error {
        Error::Corrupt(format!("a {} {what}", self.record).into())
    }

    fn ends_early(&self) -> Error {
        self.corrupt(format_args!("ends early"))
    }
}

/// Appends what [`Fields::number`] reads.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_of_every_length_come_back_in_one_form(number: u64, shift in 0u32..64) {
            let number = number >> shift;
            let mut bytes = vec![VERSION];
            put_number(&mut bytes, number);
            let mut fields = Fields::new("test", &bytes).unwrap();
            prop_assert_eq!(fields.number().unwrap(), number);
            prop_assert_eq!(fields.short_value(false).unwrap(), None);
        }

        #[test]
        fn whatever_reads_as_a_number_is_its_encoding(rest in proptest::collection::vec(any::<u8>(), 0..12)) {
            let bytes = [&[VERSION][..], &rest].concat();
            let mut fields = Fields::new("test", &bytes).unwrap();
            if let Ok(number) = fields.number() {
                let mut again = Vec::new();
                put_number(&mut again, number);
                prop_assert!(rest.starts_with(&again));
            }
        }
    }
}
