//! kill -9 of nodes under load, and nodes that stand still for longer than a lease: no acknowledged write is lost, histories stay linearizable, no coin appears or vanishes, and
//! those who come back go on.

use std::{env, thread};

use storage_pipeline::CompletionMode;

use super::{
    bank::{ACCOUNTS, Bank},
    load::{KEYS, Load, StopAtDrop},
    nodes::NODES,
    processes::Victims,
    victim::Victim,
};

/// Lets whoever leads stand still until others have written without it. Then it is asked for what they wrote, and goes on: its
/// lease is over, whatever it believes.
fn pause_leader(victims: &Victims, load: &Load<Victim>, bank: &Bank<Victim>) {
    let leader = victims.find(true);
    let paused = &victims.running[&leader];
    paused.pause();
    let others: Vec<_> =
        NODES.into_iter().filter(|id| *id != leader).map(|id| victims.running[&id].clone()).collect();
    load.follow(others.clone());
    bank.follow(others);
    load.wait_for_commands("commands while a leader stands still");
    let read = |n: usize| {
        load.read(paused, &format!("key-{n}"));
    };
    paused.go_on(read, KEYS as usize);
}

#[test]
fn kill_9_of_leaders_followers_and_all_and_a_leader_that_stands_still_lose_nothing_that_was_acknowledged() {
    // More of them in the long stage.
    let rounds: u64 = env::var("NODE_KILL_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"));
    for mode in CompletionMode::ALL {
        let mut victims = Victims::start(mode);
        let (load, bank) = (Load::on(victims.all()), Bank::with(victims.all()));
        let tell = |victims: &Victims| {
            load.follow(victims.all());
            bank.follow(victims.all());
        };
        thread::scope(|scope| {
            let stop = StopAtDrop(bank.stop());
            let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| bank.client())).collect();
            load.run(3, || {
                for round in 0..rounds {
                    load.wait_for_commands("commands");
                    // Each node in its turn too, whatever it does.
                    for victim in [victims.find(true), victims.find(false), round % 3 + 1] {
                        victims.kill(victim);
                        tell(&victims);
                        load.wait_for_commands("commands without a node");
                        victims.start_node(victim);
                        tell(&victims);
                        load.wait_for_commands("commands of all");
                    }
                    pause_leader(&victims, &load, &bank);
                    tell(&victims);
                    load.wait_for_commands("commands of all");
                    NODES.into_iter().for_each(|id| victims.kill(id));
                    NODES.into_iter().for_each(|id| victims.start_node(id));
                    tell(&victims);
                    load.wait_for_commands("commands after all were killed");
                }
                bank.wait_for_business();
            });
            drop(stop);
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        let total = victims.ask(&format!("total {ACCOUNTS}")).parse().unwrap();
        bank.close(total, |number| victims.ask(&format!("record {number}")));
        assert!(load.history.check() > 100);
        NODES.into_iter().for_each(|id| victims.kill(id));
    }
}
