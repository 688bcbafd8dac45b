//! A TCP link from one node to another that a test can cut: by hanging up, or by falling silent, as a network does that loses
//! every packet, or those of one direction.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// What becomes of the bytes on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Open,
    /// They are neither delivered nor refused.
    Silent,
    /// As above, but only what the node says that made the connection.
    SilentThere,
    /// As above, but only what it is answered.
    SilentBack,
    /// Connections are ended, new ones too.
    HungUp,
}

/// The direction of bytes: away from the node that made the connection, or back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    There,
    Back,
}

impl Mode {
    fn silences(self, direction: Direction) -> bool {
        match self {
            Self::Open | Self::HungUp => false,
            Self::Silent => true,
            Self::SilentThere => direction == Direction::There,
            Self::SilentBack => direction == Direction::Back,
        }
    }
}

/// The link. It ends when it is dropped.
pub(crate) struct Link {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Where the node listens, once it does.
    end: Mutex<Option<SocketAddr>>,
    mode: Mutex<Mode>,
    stopped: AtomicBool,
    carried: AtomicU64,
}

impl Link {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &own));
        Self { address, shared }
    }

    /// Where it leads from now on.
    pub(crate) fn lead_to(&self, end: SocketAddr) {
        *self.shared.end.lock().unwrap() = Some(end);
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    /// Bytes that were delivered, in either direction.
    pub(crate) fn carried(&self) -> u64 {
        self.shared.carried.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // The thread waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        if self.stopped.load(Ordering::Relaxed) { Mode::HungUp } else { *self.mode.lock().unwrap() }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let end = *shared.end.lock().unwrap();
        let (Ok(near), Some(end)) = (stream, end) else { continue };
        if shared.mode() == Mode::HungUp {
            continue;
        }
        let Ok(far) = TcpStream::connect(end) else { continue };
        for (from, to, direction) in [(&near, &far, Direction::There), (&far, &near, Direction::Back)] {
            let (from, to, shared) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(shared));
            thread::spawn(move || carry(from, to, direction, &shared));
        }
    }
}

/// Carries bytes in one direction until one end or the link hangs up.
fn carry(mut from: TcpStream, mut to: TcpStream, direction: Direction, shared: &Shared) {
    from.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let _ = to.set_nodelay(true);
    let mut bytes = vec![0; 64 << 10];
    while shared.mode() != Mode::HungUp {
        let length = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        while shared.mode().silences(direction) {
            thread::sleep(Duration::from_millis(2));
        }
        if shared.mode() == Mode::HungUp || to.write_all(&bytes[..length]).is_err() {
            break;
        }
        shared.carried.fetch_add(length as u64, Ordering::Relaxed);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
