//! A listener for requests of people and scripts, who may be slow, many or hostile: so many connections at a time, each for so
//! long and with so many bytes. Hands on connections that end by themselves; those above the bound wait in the operating
//! system's queue, which is short.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};

/// How long it waits after a connection could not be taken: files may be short for a while.
const PAUSE: Duration = Duration::from_millis(100);

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Connections at a time.
    pub(super) connections: usize,
    /// Bytes that one of them may send.
    pub(super) request_bytes: usize,
    /// From its beginning to its end.
    pub(super) time: Duration,
}

/// The listener.
#[derive(Debug)]
pub(super) struct BoundedListener {
    listener: TcpListener,
    bounds: Bounds,
    places: Arc<Semaphore>,
}

impl BoundedListener {
    pub(super) fn new(listener: TcpListener, bounds: Bounds) -> Self {
        Self { listener, bounds, places: Arc::new(Semaphore::new(bounds.connections)) }
    }
}

impl Listener for BoundedListener {
    type Io = Bounded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Bounded, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let Bounds { request_bytes, time, .. } = self.bounds;
                    let end = Box::pin(sleep(time));
                    return (Bounded { stream, end, bytes_left: request_bytes, _place: place }, address);
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken for the status");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its time or its bytes are used up. Its place is free when it is dropped.
#[derive(Debug)]
pub(super) struct Bounded {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    bytes_left: usize,
    _place: OwnedSemaphorePermit,
}

impl Bounded {
    /// Fails where the time is over, and wakes the task then where it is not.
    fn in_time(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.in_time(context)?;
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        match self.bytes_left.checked_sub(read) {
            Some(left) => self.bytes_left = left,
            None => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_time(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
