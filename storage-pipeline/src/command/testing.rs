//! Runs commands against a memory engine, one after the other, as the pipeline would.
