//! An entry as raft-engine wants one: a message of protobuf, which is here an index and the bytes that this log's own
//! codec makes. Raft's own message cannot be used: it is generated for another library, and what stands in for
//! protobuf's methods panics where the engine calls it.

use std::{any::Any, sync::OnceLock};

use protobuf::{
    Clear, CodedInputStream, CodedOutputStream, Message, ProtobufError, ProtobufResult, UnknownFields,
    error::WireError, reflect::MessageDescriptor,
};
use raft::eraftpb::Entry;
use raft_engine::MessageExt;

use super::codec;
use crate::engine::EngineError;

/// The bytes of an entry, with its index before them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StoredEntry {
    bytes: Vec<u8>,
    /// Always empty; the trait asks for a place of them.
    unknown: UnknownFields,
}

const INDEX_BYTES: usize = 8;

impl StoredEntry {
    pub(super) fn new(entry: &Entry) -> Self {
        let mut bytes = Vec::with_capacity(INDEX_BYTES + 13 + entry.context.len() + entry.data.len());
        bytes.extend_from_slice(&entry.index.to_le_bytes());
        codec::put_entry(&mut bytes, entry);
        Self { bytes, unknown: UnknownFields::new() }
    }

    /// # Errors
    /// What cannot be decoded.
    pub(super) fn entry(&self) -> Result<Entry, EngineError> {
        codec::take_entry(self.index(), self.bytes.get(INDEX_BYTES..).unwrap_or_default())
    }

    fn index(&self) -> u64 {
        self.bytes.first_chunk().map_or(0, |index| u64::from_le_bytes(*index))
    }
}

impl MessageExt for StoredEntry {
    type Entry = Self;

    fn index(entry: &Self) -> u64 {
        entry.index()
    }
}

impl Clear for StoredEntry {
    fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl Message for StoredEntry {
    fn write_to_vec(&self, out: &mut Vec<u8>) -> ProtobufResult<()> {
        out.extend_from_slice(&self.bytes);
        Ok(())
    }

    fn parse_from_bytes(bytes: &[u8]) -> ProtobufResult<Self> {
        if bytes.len() < INDEX_BYTES {
            return Err(ProtobufError::WireError(WireError::UnexpectedEof));
        }
        Ok(Self { bytes: bytes.to_vec(), unknown: UnknownFields::new() })
    }

    fn merge_from(&mut self, input: &mut CodedInputStream<'_>) -> ProtobufResult<()> {
        while !input.eof()? {
            self.bytes.push(input.read_raw_byte()?);
        }
        Ok(())
    }

    fn write_to_with_cached_sizes(&self, out: &mut CodedOutputStream<'_>) -> ProtobufResult<()> {
        out.write_raw_bytes(&self.bytes)
    }

    fn compute_size(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("a proposal is far shorter than 4 GiB")
    }

    fn get_cached_size(&self) -> u32 {
        self.compute_size()
    }

    fn is_initialized(&self) -> bool {
        true
    }

    fn get_unknown_fields(&self) -> &UnknownFields {
        &self.unknown
    }

    fn mut_unknown_fields(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    /// For reflection, which nobody uses here.
    fn descriptor(&self) -> &'static MessageDescriptor {
        Self::descriptor_static()
    }

    fn new() -> Self {
        Self::default()
    }

    fn default_instance() -> &'static Self {
        static INSTANCE: OnceLock<StoredEntry> = OnceLock::new();
        INSTANCE.get_or_init(Self::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_through_each_way_of_writing_and_reading() {
        let entry = Entry { index: 7, term: 3, data: vec![1, 2, 3], context: vec![4], ..Entry::default() };
        let stored = StoredEntry::new(&entry);
        let mut bytes = Vec::new();
        stored.write_to_vec(&mut bytes).unwrap();
        assert_eq!(stored.write_to_bytes().unwrap(), bytes);
        for back in [
            StoredEntry::parse_from_bytes(&bytes).unwrap(),
            StoredEntry::parse_from_reader(&mut &bytes[..]).unwrap(),
        ] {
            assert_eq!((<StoredEntry as MessageExt>::index(&back), back.entry()), (7, Ok(entry.clone())));
        }
        StoredEntry::parse_from_bytes(&bytes[..7]).unwrap_err();
        StoredEntry::parse_from_bytes(&bytes[..9]).unwrap().entry().unwrap_err();
    }
}
