//! Generates the server's messages and services from `proto/`. Without the feature `server` there is nothing to do.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "server")]
    {
        println!("cargo:rerun-if-changed=proto");
        tonic_prost_build::configure()
            .bytes(".storage_pipeline.raft.v1")
            .compile_protos(&["proto/raft.proto"], &["proto"])?;
    }
    Ok(())
}
