//! Networks that carry in one direction only: a leader that speaks and does not hear, or hears and is not heard, and a follower likewise.

use std::thread;

use storage_pipeline::CompletionMode;

use super::{
    bank::{ACCOUNTS, Bank},
    load::{Load, StopAtDrop},
    nodes::NODES,
    processes::{Victims, Wires},
};
use crate::support::wait_for;

/// How a direction is lost: with all that the connections need of it, or only the messages in it.
type Lose = fn(&Wires, u64, u64);

#[test]
fn a_node_that_only_hears_or_only_speaks_holds_nobody_up_and_nothing_is_lost() {
    let mut victims = Victims::start(CompletionMode::default());
    let (load, bank) = (Load::on(victims.all()), Bank::with(victims.all()));
    thread::scope(|scope| {
        let stop = StopAtDrop(bank.stop());
        let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| bank.client())).collect();
        load.run(3, || {
            for lose in [Wires::silence as Lose, Wires::lose_messages] {
                for (leads, speaks) in [(true, true), (true, false), (false, true), (false, false)] {
                    load.wait_for_commands("commands of all");
                    let node = victims.find(leads);
                    for other in NODES.into_iter().filter(|other| *other != node) {
                        let (from, to) = if speaks { (other, node) } else { (node, other) };
                        lose(&victims.wires, from, to);
                    }
                    if leads {
                        let others = || victims.running.iter().filter(|(id, _)| **id != node);
                        wait_for("another leader", || others().any(|(_, victim)| victim.leads()));
                        wait_for("the old one to give way", || !victims.running[&node].leads());
                    }
                    load.wait_for_commands("commands of the two that hear each other");
                    victims.wires.heal();
                }
            }
            load.wait_for_commands("commands of all");
            bank.wait_for_business();
        });
        drop(stop);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    let total = victims.ask(&format!("total {ACCOUNTS}")).parse().unwrap();
    bank.close(total, |number| victims.ask(&format!("record {number}")));
    assert!(load.history.check() > 300);
    NODES.into_iter().for_each(|id| victims.kill(id));
}
