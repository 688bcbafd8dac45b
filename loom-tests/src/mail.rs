//! What the models of the mailbox send: messages that are worth nothing unless their receiver sees what their sender
//! wrote.

use loom::thread;
use storage_pipeline::mailbox::Mailbox;

use crate::Probe;

/// A message that its sender wrote to, and that is worth nothing unless its receiver can see that.
pub struct Message {
    name: &'static str,
    written: Probe,
}

/// A message that was written to.
pub fn message(name: &'static str) -> Message {
    let written = Probe::new();
    written.write();
    Message { name, written }
}

/// Its name, where its writing can be seen.
pub fn open(message: Message) -> &'static str {
    message.written.read();
    message.name
}

/// A thread that sends these, and keeps what comes back.
pub fn sender(
    mailbox: &Mailbox<Message>,
    names: &'static [&'static str],
) -> thread::JoinHandle<Vec<&'static str>> {
    let mailbox = mailbox.clone();
    thread::spawn(move || {
        names.iter().filter_map(|name| mailbox.send(message(name)).err().map(open)).collect()
    })
}

/// A receiver that shares the work with others, until the mailbox is closed and empty.
pub fn receive_to_the_end(mailbox: &Mailbox<Message>) -> Vec<&'static str> {
    std::iter::from_fn(|| mailbox.receive()).map(open).collect()
}

/// Names, for comparing what no order is promised for.
pub fn sorted(mut names: Vec<&'static str>) -> Vec<&'static str> {
    names.sort_unstable();
    names
}
