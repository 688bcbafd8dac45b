//! Raw keys: the short blocking forms.

use crate::{
    command::{RawDelete, RawGet, RawPut},
    error::Outcome,
    storage::Storage,
};

impl Storage {
    /// Sets a raw key and waits until the write is durable and applied.
    pub fn raw_put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.execute(RawPut { key: key.to_vec(), value: value.to_vec() })
    }

    /// Reads a raw key.
    pub fn raw_get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.execute(RawGet { key: key.to_vec() })
    }

    /// Removes a raw key and waits until that is durable and applied.
    pub fn raw_delete(&self, key: &[u8]) -> Outcome<()> {
        self.execute(RawDelete { key: key.to_vec() })
    }
}
