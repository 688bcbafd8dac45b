//! The client library in the place of nodes: what it writes and moves reaches whoever leads, and what it is told is what its users are
//! told.

use storage_pipeline::{Client, ClientConfig, CommandError, Outcome, client::transaction::Transaction};
use tokio::runtime::Runtime;

use super::{
    bank::{ACCOUNTS, Teller},
    load::Register,
    processes::Wires,
};
use crate::support::PATIENCE;

/// A client that any thread may use and wait for.
#[derive(Clone)]
pub(crate) struct Remote<'a> {
    client: Client,
    runtime: &'a Runtime,
}

impl<'a> Remote<'a> {
    /// A client that outlives every election.
    pub(crate) fn connect(runtime: &'a Runtime, wires: &Wires) -> Self {
        let mut config = ClientConfig::new(7, wires.doors());
        config.timeout = PATIENCE;
        Self { client: runtime.block_on(Client::connect(config)).unwrap(), runtime }
    }

    /// The record of a transfer, if it left one.
    pub(crate) fn record(&self, number: u64) -> String {
        let found = self
            .runtime
            .block_on(async { self.client.begin().await.into_result()?.get(moved(number).as_bytes()).await });
        text(found.unwrap())
    }
}

impl Register for Remote<'_> {
    fn put(&self, key: &str, value: u64) -> Outcome<()> {
        self.runtime.block_on(self.client.raw_put(key.as_bytes(), value.to_string().as_bytes()))
    }

    fn get(&self, key: &str) -> Outcome<Option<u64>> {
        // Every value that was written is a number.
        let read = self.runtime.block_on(self.client.raw_get(key.as_bytes()));
        read.map(|value| value.map(|value| text(Some(value)).parse().unwrap()))
    }
}

impl Teller for Remote<'_> {
    fn transfer(&self, number: u64, from: u64, to: u64) -> bool {
        let transfer = async {
            let mut transaction = self.client.begin().await.into_result()?;
            for (account, change) in [(from, -1), (to, 1)] {
                let coins = coins(&transaction, account).await? + change;
                transaction.put(key(account).as_bytes(), coins.to_string().as_bytes());
            }
            transaction.put(moved(number).as_bytes(), format!("{from}>{to}").as_bytes());
            Ok::<_, CommandError>(transaction.commit().await.is_ok())
        };
        self.runtime.block_on(transfer).unwrap_or(false)
    }

    fn total(&self) -> Option<i64> {
        let total = async {
            let transaction = self.client.begin().await.into_result()?;
            let mut total = 0;
            for account in 0..ACCOUNTS {
                total += coins(&transaction, account).await?;
            }
            Ok::<_, CommandError>(total)
        };
        self.runtime.block_on(total).ok()
    }
}

async fn coins(transaction: &Transaction<Client>, account: u64) -> Result<i64, CommandError> {
    let found = transaction.get(key(account).as_bytes()).await?;
    Ok(found.map_or(0, |coins| text(Some(coins)).parse().expect("a number of coins")))
}

fn key(account: u64) -> String {
    format!("account-{account}")
}

fn moved(number: u64) -> String {
    format!("account-moved-{number}")
}

fn text(stored: Option<Vec<u8>>) -> String {
    String::from_utf8(stored.unwrap_or_default()).expect("only text was written")
}
