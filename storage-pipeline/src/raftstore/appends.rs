//! Entries on their way to another replica. Raft puts all that was proposed in a round into one message, however much that is;
//! here it is cut into messages of the size that raft keeps to elsewhere. Pure.

use raft::eraftpb::{Message, MessageType};

use super::log_storage::Room;

/// Cuts messages that carry more than `most_bytes` of entries, each into as many as are needed to carry no more, or one entry
/// each. The order stays.
pub(super) fn cut(messages: Vec<Message>, most_bytes: u64) -> Vec<Message> {
    if messages.iter().all(|message| entries_within(message, most_bytes) == message.entries.len()) {
        return messages;
    }
    let mut parts = Vec::with_capacity(messages.len() + 1);
    for mut message in messages {
        loop {
            let fit = entries_within(&message, most_bytes);
            let rest = message.entries.split_off(fit);
            let Some(last) = message.entries.last().filter(|_| !rest.is_empty()) else { break };
            let place = (last.index, last.term);
            let head = Message { entries: std::mem::take(&mut message.entries), ..message.clone() };
            parts.push(head);
            (message.index, message.log_term) = place;
            message.entries = rest;
        }
        parts.push(message);
    }
    parts
}

/// How many entries of a message fit into so many bytes: one at least, where there is one.
fn entries_within(message: &Message, most_bytes: u64) -> usize {
    if message.get_msg_type() != MessageType::MsgAppend {
        return message.entries.len();
    }
    let mut room = Room::new(most_bytes);
    message.entries.iter().take_while(|entry| room.take(entry)).count()
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;
    use proptest::prelude::*;

    fn append(kind: MessageType, sizes: &[usize]) -> Message {
        let mut message =
            Message { to: 2, from: 1, term: 9, log_term: 3, index: 10, commit: 7, ..Message::default() };
        message.set_msg_type(kind);
        let entry = |(size, index): (&usize, u64)| Entry {
            index,
            term: 3 + index / 13,
            data: vec![1; *size],
            ..Entry::default()
        };
        message.entries = sizes.iter().zip(11..).map(entry).collect();
        message
    }

    #[test]
    fn what_fits_and_what_is_no_append_leaves_as_it_came() {
        for message in [append(MessageType::MsgAppend, &[5, 5]), append(MessageType::MsgPropose, &[500, 500])]
        {
            assert_eq!(cut(vec![message.clone()], 100), [message]);
        }
    }

    proptest! {
        #[test]
        fn the_parts_follow_each_other_hold_what_they_may_and_are_all_that_came(
            sizes in proptest::collection::vec(proptest::collection::vec(0..300usize, 0..20), 0..4), most in 1..600u64,
        ) {
            let whole: Vec<_> = sizes.iter().map(|sizes| append(MessageType::MsgAppend, sizes)).collect();
            let mut parts = cut(whole.clone(), most).into_iter();
            for message in whole {
                let (mut place, mut entries) = ((message.index, message.log_term), Vec::new());
                loop {
                    let part = parts.next().unwrap();
                    prop_assert_eq!((part.index, part.log_term), place, "it is appended behind the last one");
                    let bytes: usize = part.entries.iter().map(raft::util::entry_approximate_size).sum();
                    prop_assert!(part.entries.len() < 2 || bytes as u64 <= most);
                    prop_assert_eq!(Message { entries: Vec::new(), index: 10, log_term: 3, ..part.clone() }, Message { entries: Vec::new(), ..message.clone() });
                    entries.extend(part.entries);
                    match entries.last() {
                        Some(Entry { index, term, .. }) if entries.len() < message.entries.len() => place = (*index, *term),
                        _ => break,
                    }
                }
                prop_assert_eq!(entries, message.entries);
            }
            prop_assert_eq!(parts.next(), None);
        }
    }
}
