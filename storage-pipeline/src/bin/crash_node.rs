//! A node that does what its standard input says and prints what came of it, until it is killed: the victim of the crash
//! tests of groups.
//!
//! `crash-node FILE [FIELD=VALUE]...`. It prints where it listens. A line of its input is one command, with an id for the
//! answer; they run side by side, and at the end of the input the node stops.
//!
//! | command | answer |
//! |---|---|
//! | `ID put KEY VALUE`, `ID get KEY` | raw: `ID applied [VALUE]` |
//! | `ID transfer NUMBER FROM TO` | moves a coin, with a record of it: `ID applied` |
//! | `ID total ACCOUNTS` | all coins at one moment: `ID applied TOTAL` |
//! | `ID record NUMBER` | of a transfer: `ID applied [RECORD]` |
//! | `ID leads` | whether it leads: `ID applied true` |
//!
//! Instead of `applied` it may be `refused`, which promises that nothing was written, or `unknown`.

use std::{
    env,
    error::Error,
    io::{BufRead, Write},
    path::Path,
    thread,
};

use storage_pipeline::{
    CommandError, Outcome, Storage, Transaction, TransactionError,
    command::{RawGet, RawPut},
    raftstore::status::Role,
    server::{Node, NodeConfig},
};

/// What becomes of a command: its answer, or whether it is unknown what came of it.
type Answer = Result<String, bool>;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [file, fields @ ..] = args.as_slice() else {
        return Err("usage: crash-node FILE [FIELD=VALUE]...".into());
    };
    let mut config = NodeConfig::default();
    config.read_file(Path::new(file))?;
    for field in fields {
        let (name, value) = field.split_once('=').ok_or("a field is NAME=VALUE")?;
        config.set(name, value)?;
    }
    let node = Node::start(config)?;
    say(&format!("listening on {}", node.address()));
    for line in std::io::stdin().lock().lines() {
        run(node.storage(), &line?)?;
    }
    node.stop();
    Ok(())
}

fn run(storage: &Storage, line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let [id, command, words @ ..] = words.as_slice() else { return Err("no command".into()) };
    let id = id.clone();
    match (command.as_str(), words) {
        ("put", [key, value]) => {
            let put = RawPut { key: key.clone().into(), value: value.clone().into() };
            storage.submit(put, move |outcome| answer(&id, of(outcome).map(|()| String::new())));
        }
        ("get", [key]) => {
            let get = RawGet { key: key.clone().into() };
            storage.submit(get, move |outcome| answer(&id, of(outcome).map(text)));
        }
        ("leads", []) => answer(&id, Ok((storage.status().role == Role::Leader).to_string())),
        ("transfer", [number, from, to]) => {
            let (number, from, to) = (number.clone(), from.clone(), to.clone());
            beside(storage, id, move |transaction| transfer(transaction, &number, &from, &to));
        }
        ("total", [accounts]) => {
            let accounts: u64 = accounts.parse()?;
            beside(storage, id, move |transaction| total(&transaction, accounts));
        }
        ("record", [number]) => {
            let key = format!("account-moved-{number}");
            beside(storage, id, move |transaction| {
                transaction.get(key.as_bytes()).map(text).map_err(read_only)
            });
        }
        _ => return Err(format!("unknown command {line}").into()),
    }
    Ok(())
}

/// Runs a transaction in a thread of its own, since it blocks.
fn beside(storage: &Storage, id: String, run: impl FnOnce(Transaction) -> Answer + Send + 'static) {
    let storage = storage.clone();
    thread::spawn(move || answer(&id, of(storage.begin()).and_then(run)));
}

fn transfer(mut transaction: Transaction, number: &str, from: &str, to: &str) -> Answer {
    for (account, coins) in [(from, -1), (to, 1)] {
        let key = format!("account-{account}");
        let before = transaction.get(key.as_bytes()).map_err(read_only)?;
        transaction.put(key.as_bytes(), (coins_of(before) + coins).to_string().as_bytes());
    }
    transaction.put(format!("account-moved-{number}").as_bytes(), format!("{from}>{to}").as_bytes());
    match transaction.commit() {
        Ok(_) => Ok(String::new()),
        Err(TransactionError::RolledBack(_)) => Err(false),
        Err(_) => Err(true),
    }
}

fn total(transaction: &Transaction, accounts: u64) -> Answer {
    let keys = (0..accounts).map(|account| format!("account-{account}"));
    let coins = keys.map(|key| transaction.get(key.as_bytes()).map(coins_of));
    coins.sum::<Result<i64, _>>().map(|total| total.to_string()).map_err(read_only)
}

fn coins_of(stored: Option<Vec<u8>>) -> i64 {
    stored.map_or(0, |coins| text(Some(coins)).parse().expect("a number of coins"))
}

fn text(stored: Option<Vec<u8>>) -> String {
    String::from_utf8(stored.unwrap_or_default()).expect("only text was written")
}

/// A read that failed has written nothing.
fn read_only(_: CommandError) -> bool {
    false
}

fn of<T>(outcome: Outcome<T>) -> Result<T, bool> {
    match outcome {
        Outcome::Applied(value) => Ok(value),
        Outcome::NotExecuted(_) => Err(false),
        Outcome::Indeterminate(_) => Err(true),
    }
}

fn answer(id: &str, answer: Answer) {
    match answer {
        Ok(value) => say(&format!("{id} applied {value}")),
        Err(false) => say(&format!("{id} refused")),
        Err(true) => say(&format!("{id} unknown")),
    }
}

/// One line at once, so that a kill tears at most the last.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this is the one who kills; without a reader there is nothing to say.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
