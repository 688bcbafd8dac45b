//! Fills a store before it is measured: sorted files that RocksDB takes in whole, which is a hundred times faster than
//! puts and leaves the store as compacted as it can be.

use std::path::Path;

use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};
use storage_pipeline::engine::Cf;

use super::axis::Size;
use crate::round::Failure;

/// The value of every key.
pub(super) fn value(bytes: usize) -> Vec<u8> {
    vec![7; bytes]
}

/// Keys are numbers from zero, and sort as they do.
pub(super) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Puts all keys of a size into the raw keys of the closed store at `data`, or into the default ones of a bare one.
pub(super) fn load(data: &Path, scratch: &Path, size: Size, cf: Option<Cf>) -> Result<(), Failure> {
    let file = scratch.join("load.sst");
    write(&file, size)?;
    let mut options = Options::default();
    options.create_if_missing(true);
    let families = if cf.is_some() { DB::list_cf(&options, data)? } else { vec!["default".to_owned()] };
    let db = DB::open_cf(&options, data, families)?;
    let family = db.cf_handle(cf.map_or("default", Cf::name)).ok_or("the store has no such column family")?;
    let mut ingest = IngestExternalFileOptions::default();
    ingest.set_move_files(true);
    db.ingest_external_file_cf_opts(family, &ingest, vec![&file])?;
    Ok(())
}

fn write(file: &Path, size: Size) -> Result<(), Failure> {
    let options = Options::default();
    let mut writer = SstFileWriter::create(&options);
    writer.open(file)?;
    let value = value(size.value);
    for number in 0..size.keys {
        writer.put(key(number), &value)?;
    }
    Ok(writer.finish()?)
}
