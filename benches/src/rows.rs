//! Rows shaped like those of sysbench's `oltp_insert`: an integer key, an indexed integer, 119 and 59 characters of
//! digit groups. A row is a function of its number, so that it can be checked without being kept.

/// The row and its index entry, as a SQL layer would store them: two keys in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Key of the record.
    pub record_key: Vec<u8>,
    /// The columns `k`, `c` and `pad`.
    pub record: Vec<u8>,
    /// Key of the entry in the index on `k`, which ends with the row's number.
    pub index_key: Vec<u8>,
    /// An index entry has no value of its own.
    pub index: Vec<u8>,
}

/// A row's identity: which client inserted it, and as its how many-eth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowId {
    /// Number of the client, within a run.
    pub client: u32,
    /// Number of the row, within the client.
    pub number: u32,
}

impl RowId {
    fn word(self) -> u64 {
        u64::from(self.client) << 32 | u64::from(self.number)
    }

    /// The row with this identity.
    #[must_use]
    pub fn row(self) -> Row {
        let mut digits = Digits(self.word());
        let k = u32::try_from(digits.next_word() % 100_000).expect("below 100,000");
        let mut record = k.to_be_bytes().to_vec();
        digits.groups(10, &mut record);
        digits.groups(5, &mut record);
        // Spread over the key space, as an auto-increment key of several tables would be.
        let id = scramble(self.word()).to_be_bytes();
        let record_key = [b"t1_r".as_slice(), &id].concat();
        let index_key = [b"t1_i".as_slice(), &k.to_be_bytes(), &id].concat();
        Row { record_key, record, index_key, index: b"0".to_vec() }
    }
}

/// A stream of digits from a seed (SplitMix64).
struct Digits(u64);

impl Digits {
    fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.0)
    }

    /// Appends groups of eleven digits with dashes between them.
    fn groups(&mut self, count: usize, out: &mut Vec<u8>) {
        for group in 0..count {
            if group > 0 {
                out.push(b'-');
            }
            let mut word = self.next_word();
            for _ in 0..11 {
                out.push(b'0' + (word % 10) as u8);
                word /= 10;
            }
        }
    }
}

/// Spreads a number over all words (SplitMix64's finalizer).
pub(crate) fn scramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rows_have_the_shape_of_sysbench_and_are_all_different() {
        let mut keys = HashSet::new();
        for client in 0..20 {
            for number in 0..50 {
                let row = RowId { client, number }.row();
                assert_eq!(row.record.len(), 4 + 119 + 59);
                assert_eq!(row, RowId { client, number }.row());
                assert!(keys.insert(row.record_key) && keys.insert(row.index_key));
            }
        }
    }
}
