//! How a connection to a node is made, by another node or by a client: its address, its time limits, its windows.

use std::time::Duration;

use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use super::tls::Tls;

/// How long the other side may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection on which nothing is heard for so long is asked whether it lives, and is given up after so long.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(2);
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes that may be under way before the other side has taken them.
pub(crate) const STREAM_WINDOW: u32 = 2 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 8 << 20;

/// Where a node can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    endpoint: Endpoint,
}

impl Dial {
    /// The node at `host:port`, over TLS where that is given.
    ///
    /// # Errors
    /// That is no address, or the files of TLS hold what they must not, in words.
    pub(crate) fn new(address: &str, tls: Option<&Tls>) -> Result<Self, String> {
        let (host, port) = address.rsplit_once(':').ok_or_else(|| "no port is named".to_owned())?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err("it is not host:port".to_owned());
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let words = |error: tonic::transport::Error| causes(&error);
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(words)?;
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls.client()).map_err(words)?;
        }
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        Ok(Self { endpoint })
    }

    /// Connects.
    ///
    /// # Errors
    /// Nobody is there, or nobody who answers.
    pub(crate) async fn connect(&self) -> Result<Channel, Status> {
        self.endpoint.connect().await.map_err(|error| Status::unavailable(causes(&error)))
    }
}

/// What an error says, with all that caused it.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in ["127.0.0.1:20160", "[::1]:1", "node-1.example:65535"] {
            assert!(Dial::new(good, None).is_ok(), "{good}");
        }
        for bad in ["", "host", "host:", ":1", "host:65536", "ho st:1", "http://host:1:x"] {
            assert!(Dial::new(bad, None).is_err(), "{bad}");
        }
    }
}
