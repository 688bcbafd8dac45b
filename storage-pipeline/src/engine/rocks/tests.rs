//! Tests of the data engine on RocksDB.
