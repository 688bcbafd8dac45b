//! Generates messages and services from `proto/`. Without the feature `protocol` there is nothing to do.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "protocol")]
    {
        println!("cargo:rerun-if-changed=proto");
        let is_server = cfg!(feature = "server");
        tonic_prost_build::configure()
            .build_server(is_server)
            .build_client(cfg!(feature = "client"))
            .compile_protos(&["proto/store.proto"], &["proto"])?;
        if is_server {
            tonic_prost_build::configure()
                .bytes(".storage_pipeline.raft.v1")
                .compile_protos(&["proto/raft.proto"], &["proto"])?;
        }
    }
    Ok(())
}
