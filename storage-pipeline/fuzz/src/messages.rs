//! Messages and chunks of snapshots that somebody who speaks for other replicas may send: one replica takes or refuses each of
//! them, in a bounded time, and goes on. It may stop only where it is told that it has lost what it had acknowledged.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use storage_pipeline::{
    Config, Storage,
    engine::{Cf, Modify, memory::MemoryEngine, modify},
    raftstore::{
        entry::{self, Owner},
        log_storage::{MemoryLog, Position},
        snapshot::{Sending, SnapshotChunk},
        transport::{Message, MessageType, Transport},
    },
    storage::Parts,
};

/// Keys of each region.
const KEYS: u8 = 3;

/// What the replica says, to nobody.
struct Silence(Mutex<usize>);

impl Transport for Silence {
    fn send(&self, _: u64, messages: Vec<Message>) {
        *self.0.lock().unwrap() += messages.len();
    }
}

/// Small numbers, as what matters is how they lie to each other, and sometimes a great one.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let byte = self.byte()?;
        Some(match byte {
            0..=199 => u64::from(byte % 12),
            200..=239 => u64::from(byte),
            _ => u64::MAX - u64::from(255 - byte),
        })
    }

    fn list(&mut self) -> Option<Vec<u64>> {
        let length = self.byte()? % 4;
        (0..length).map(|_| self.number()).collect()
    }
}

/// Opens one of three replicas, hands it everything, closes it, and opens it again from what it has kept. Returns what it
/// has applied, and nothing where it was told of a loss.
///
/// # Panics
/// If it stopped for another reason.
pub fn run(input: &[u8]) -> Option<u64> {
    let (engine, log) = (MemoryEngine::default(), MemoryLog::new());
    let mut numbers = Numbers(input);
    let storage = open(&engine, &log);
    while let Some(()) = hand_over(&storage, &mut numbers) {}
    storage.close();
    let (applied, fault) = (storage.applied_index(), storage.fault());
    drop(storage);
    if let Some(fault) = fault {
        assert!(fault.contains("it has lost a part"), "{fault}");
        return None;
    }
    assert_eq!(open(&engine, &log).fault(), None);
    Some(applied)
}

fn open(engine: &MemoryEngine, log: &MemoryLog) -> Storage {
    let mut config = Config::new("in-memory");
    config.replica_id = 1;
    config.voters = vec![1, 2, 3];
    config.worker_threads = 1;
    config.split_keys = vec![vec![KEYS]];
    // No election of its own comes between.
    config.tick = Duration::from_secs(1);
    let parts =
        Parts { dir: "in-memory".into(), engine: Arc::new(engine.clone()), log: Box::new(log.clone()) };
    Storage::open_replica(config, parts, Arc::new(Silence(Mutex::default())), None)
        .expect("what a replica has kept can be opened")
}

/// Makes the next message, or chunk, of the input.
fn hand_over(storage: &Storage, numbers: &mut Numbers<'_>) -> Option<()> {
    let kind = numbers.byte()?;
    // One of the two that there are, or a third that nobody has.
    let at = kind / 24 % 3;
    let region = 1 + u64::from(at);
    let put = |value: u8| Modify::Put(Cf::Raw, vec![at * KEYS + value % KEYS], vec![value]);
    if kind % 24 == 23 {
        let position = Position { index: numbers.number()?, term: numbers.number()? };
        let sending = Sending { term: position.term, number: 1 };
        let (number, value) = (numbers.number()?, numbers.byte()?);
        let chunk = SnapshotChunk {
            region,
            from: 2,
            to: 1,
            position,
            sending,
            number,
            changes: modify::encode(&[put(value)]),
        };
        let _ = storage.receive_chunk(&chunk);
        return Some(());
    }
    let mut message = Message {
        from: u64::from(numbers.byte()? % 4),
        to: 1,
        term: numbers.number()?,
        index: numbers.number()?,
        log_term: numbers.number()?,
        commit: numbers.number()?,
        ..Message::default()
    };
    message.set_msg_type(MessageType::from_i32(i32::from(kind % 24)).unwrap_or_default());
    match message.get_msg_type() {
        MessageType::MsgAppend => {
            // Entries that follow each other, but for a byte that says otherwise.
            let (count, mut term) = (numbers.byte()? % 5, message.log_term);
            for at in 1..=u64::from(count) {
                let step = numbers.byte()?;
                term = term.saturating_add(u64::from(step % 3));
                let skip = u64::from(step >= 250);
                let index = message.index.wrapping_add(at + skip);
                let data =
                    if step % 5 == 0 { Vec::new() } else { entry::encode(Owner::of(region), &[put(step)]) };
                message.entries.push(Default::default());
                let entry = message.entries.last_mut().expect("one was pushed");
                (entry.index, entry.term, entry.data) = (index, term, data);
            }
        }
        MessageType::MsgSnapshot => {
            let chunks = numbers.number()?;
            let snapshot = message.mut_snapshot();
            let metadata = snapshot.mut_metadata();
            (metadata.index, metadata.term) = (numbers.number()?, numbers.number()?);
            let members = metadata.mut_conf_state();
            members.voters = numbers.list()?;
            members.learners = numbers.list()?;
            members.voters_outgoing = numbers.list()?;
            members.learners_next = numbers.list()?;
            members.auto_leave = numbers.byte()? % 2 == 1;
            // That of the chunks above.
            let sending = [metadata.term, 1];
            snapshot.data = sending.into_iter().chain([chunks]).flat_map(u64::to_be_bytes).collect();
        }
        _ => {
            let flags = numbers.byte()?;
            message.reject = flags & 1 != 0;
            message.reject_hint = u64::from(flags >> 4);
            message.commit_term = u64::from(flags >> 1 & 7);
            if flags & 2 != 0 {
                message.context = numbers.number()?.to_be_bytes().to_vec();
            }
            message.request_snapshot = if flags == 255 { numbers.number()? } else { 0 };
        }
    }
    let _ = storage.receive(region, message);
    Some(())
}
