//! Generates the pipeline's protocol, its client and the service that the ceiling offers without a store behind it, and what is
//! used of etcd's.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = "../../storage-pipeline/proto";
    for (folder, file) in [(own, "store.proto"), ("proto", "etcd.proto")] {
        println!("cargo:rerun-if-changed={folder}");
        let path = format!("{folder}/{file}");
        tonic_prost_build::configure().compile_protos(&[path], &[folder.to_owned()])?;
    }
    Ok(())
}
