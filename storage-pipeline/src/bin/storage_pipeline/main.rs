//! A node of a cluster: `storage-pipeline serve --config FILE`. Ends with 0 when it was asked to stop, with 1 when it
//! could not start or its store failed, and with 2 when its configuration or a flag is wrong.
//!
//! `storage-pipeline check DIR` looks at a store that is stopped. Ends with 0 when it is sound, with 1 when something is wrong
//! with it, and with 2 when nothing can be said of it.
//!
//! `storage-pipeline members` and `storage-pipeline transfer` ask a cluster who belongs to a region's group and who leads it. They end
//! with 0 when it is done, with 1 when it is not and never will be, and with 3 when nobody knows.

mod operate;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use storage_pipeline::{
    check::{CheckedRegion, check},
    server::{Node, NodeConfig, NodeConfigError, NodeError},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tracing_subscriber::{
    filter::Targets, fmt::format::FmtSpan, layer::SubscriberExt, util::SubscriberInitExt,
};

/// How often it is looked whether the store has failed.
const LOOK: Duration = Duration::from_millis(100);

/// A small replicated transactional key-value store.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// What is logged to the standard error: off, error, warn, info, debug or trace, for all or, separated by commas, for a target
    /// each, as in info,storage_pipeline::command=debug.
    #[arg(long, global = true, env = "STORAGE_PIPELINE_LOG", default_value = "info")]
    log: Targets,
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs a node until it is asked to stop, by SIGTERM or SIGINT. With SIGHUP it reads its configuration again and takes over the
    /// peers.
    Serve(Serve),
    /// Says who belongs to the group of a region, after the changes that are named, if any are.
    Members(operate::Members),
    /// Makes a node lead a region.
    Transfer(operate::Transfer),
    /// Checks a store that is stopped, without changing it: whether it starts, and whether its records can be read.
    Check(Check),
}

#[derive(Args)]
struct Serve {
    /// The configuration, in TOML.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Id of this node.
    #[arg(long)]
    node_id: Option<String>,
    /// Where it listens: host:port. Port 0 takes any that is free.
    #[arg(long)]
    listen: Option<String>,
    /// The data directory.
    #[arg(long)]
    dir: Option<String>,
    /// Who tells the caller of a write, and who releases its latches.
    #[arg(long)]
    completion_mode: Option<String>,
    /// Any other field of the configuration.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
}

#[derive(Args)]
struct Check {
    /// The data directory.
    dir: PathBuf,
    /// Where a copy is made for a while, best on the same file system; else beside the directory.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

impl Serve {
    /// The configuration: the file's, with what the flags say.
    fn read(&self) -> Result<NodeConfig, NodeConfigError> {
        let mut config = NodeConfig::default();
        if let Some(path) = &self.config {
            config.read_file(path)?;
        }
        let flags = [
            ("node_id", &self.node_id),
            ("listen", &self.listen),
            ("dir", &self.dir),
            ("completion_mode", &self.completion_mode),
        ];
        for (name, value) in flags {
            value.as_ref().map_or(Ok(()), |value| config.set(name, value))?;
        }
        for field in &self.fields {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            config.set(name, value)?;
        }
        config.validate()?;
        Ok(config)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A span is a line when it ends, with the time that it took.
    let lines = tracing_subscriber::fmt::layer().with_span_events(FmtSpan::CLOSE);
    let lines = lines.with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(cli.log).with(lines).init();
    let serve = match &cli.command {
        Task::Serve(serve) => serve,
        Task::Check(check) => return look(check),
        Task::Members(members) => return members.run(),
        Task::Transfer(transfer) => return transfer.run(),
    };
    match serve.read().map_err(NodeError::Config).and_then(|config| run(serve, config)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("storage-pipeline: {error}");
            ExitCode::from(if matches!(error, NodeError::Config(_)) { 2 } else { 1 })
        }
    }
}

fn run(serve: &Serve, config: NodeConfig) -> Result<ExitCode, NodeError> {
    // Before the node is there for anybody to stop.
    let signals = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let signals = signals.map_err(NodeError::Threads)?;
    let listen = |kind| signals.block_on(async { signal(kind) }).map_err(NodeError::Threads);
    let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let hang_up = listen(SignalKind::hangup())?;
    let node = Node::start(config)?;
    let mut out = std::io::stdout();
    // Whoever started it may have closed its output; then nobody needs to know.
    let _ = writeln!(out, "listening on {}", node.address()).and_then(|()| out.flush());
    let fault = signals.block_on(end(&node, serve, [terminate, interrupt], hang_up));
    if let Some(fault) = fault {
        eprintln!("storage-pipeline: the store stopped after a fault: {fault}");
        return Ok(ExitCode::FAILURE);
    }
    node.stop();
    Ok(ExitCode::SUCCESS)
}

fn look(Check { dir, scratch }: &Check) -> ExitCode {
    let beside = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let report = match check(dir, scratch.as_deref().unwrap_or(beside)) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("storage-pipeline: {error}");
            return ExitCode::from(2);
        }
    };
    report.owner.iter().for_each(|owner| println!("{owner}"));
    for CheckedRegion { id, applied_index, term } in &report.regions {
        println!("region {id}: applied up to entry {applied_index}, in term {term}");
    }
    for (cf, count) in &report.keys {
        println!("{}: {count} keys", cf.name());
    }
    report.findings.iter().for_each(|finding| println!("wrong: {finding}"));
    if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Waits until it is asked to stop, or the store fails; the fault, then.
async fn end(node: &Node, serve: &Serve, stops: [Signal; 2], mut hang_up: Signal) -> Option<String> {
    let [mut terminate, mut interrupt] = stops;
    loop {
        tokio::select! {
            _ = terminate.recv() => return None,
            _ = interrupt.recv() => return None,
            _ = hang_up.recv() => match serve.read().and_then(|config| node.set_peers(&config.peers)) {
                Ok(()) => tracing::info!("the peers are those of the configuration as it is now"),
                Err(error) => tracing::error!(%error, "the configuration cannot be read again: the peers stay"),
            },
            () = sleep(LOOK) => {
                if let Some(fault) = node.storage().fault() {
                    return Some(fault.to_string());
                }
            }
        }
    }
}
