//! kill -9 of nodes under clients of the library: they find whoever leads next, repeat what can do no harm and nothing else, and what they
//! were told stays true.

use std::{env, thread};

use storage_pipeline::CompletionMode;
use tokio::runtime::Runtime;

use super::{
    bank::{Bank, Teller},
    load::{Load, StopAtDrop},
    nodes::NODES,
    processes::Victims,
    remote::Remote,
};
use crate::support::wait_for;

#[test]
fn clients_of_nodes_that_are_killed_lose_nothing_and_write_nothing_twice() {
    // More of them in the long stage, in every mode: a client knows none.
    let rounds: Option<u64> =
        env::var("NODE_KILL_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number"));
    let modes = if rounds.is_some() { &CompletionMode::ALL[..] } else { &[CompletionMode::default()] };
    for mode in modes {
        let mut victims = Victims::start(*mode);
        let runtime = Runtime::new().unwrap();
        let remote = Remote::connect(&runtime, &victims.wires);
        let (load, bank) = (Load::on(vec![remote.clone()]), Bank::with(vec![remote.clone()]));
        thread::scope(|scope| {
            let stop = StopAtDrop(bank.stop());
            let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| bank.client())).collect();
            load.run(3, || {
                for round in 0..rounds.unwrap_or(1) {
                    load.wait_for_commands("commands");
                    for victim in [victims.find(true), victims.find(false), round % 3 + 1] {
                        victims.kill(victim);
                        load.wait_for_commands("commands without a node");
                        victims.start_node(victim);
                        load.wait_for_commands("commands of all");
                    }
                    NODES.into_iter().for_each(|id| victims.kill(id));
                    NODES.into_iter().for_each(|id| victims.start_node(id));
                    load.wait_for_commands("commands after all were killed");
                }
                bank.wait_for_business();
            });
            drop(stop);
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        assert_eq!(load.refused(), 0, "a client's patience outlives every kill");
        let total = || remote.total();
        wait_for("the total", || total().is_some());
        bank.close(total().unwrap(), |number| remote.record(number));
        assert!(load.history.check() > 100);
        NODES.into_iter().for_each(|id| victims.kill(id));
    }
}
