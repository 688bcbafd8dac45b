//! Who is asked: for each region the node that led it last, as far as this client knows. Pure; hands the client an address.

/// Where the leader of each region is believed to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Where nodes can be reached. Not empty.
    nodes: Vec<String>,
    /// For each region the node that is asked next.
    next: Vec<String>,
}

impl Route {
    /// Knows these nodes, of which there is at least one, and for each region its leader where that is known.
    pub(super) fn new(nodes: Vec<String>, leaders: Vec<Option<String>>) -> Self {
        let next = leaders.into_iter().map(|leader| leader.unwrap_or_else(|| nodes[0].clone())).collect();
        Self { nodes, next }
    }

    /// Whom to ask about a region, by its place among the regions.
    pub(super) fn of(&self, region: usize) -> String {
        self.next[region].clone()
    }

    /// A node said that the leader is at this address, which may be one that was not known.
    pub(super) fn leads(&mut self, region: usize, address: String) {
        if !self.nodes.contains(&address) {
            self.nodes.push(address.clone());
        }
        self.next[region] = address;
    }

    /// A node was asked in vain. The one behind it is next, unless another request has learnt something meanwhile.
    pub(super) fn failed(&mut self, region: usize, address: &str) {
        if self.next[region] == address {
            let at = self.nodes.iter().position(|node| node == address).map_or(0, |at| at + 1);
            self.next[region] = self.nodes[at % self.nodes.len()].clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        let nodes = ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec();
        Route::new(nodes, vec![None, Some("c:1".to_owned())])
    }

    #[test]
    fn each_region_has_its_own_leader_and_a_hint_counts_at_once() {
        let mut route = route();
        assert_eq!([route.of(0), route.of(1)], ["a:1", "c:1"]);
        route.leads(0, "b:1".to_owned());
        assert_eq!([route.of(0), route.of(1)], ["b:1", "c:1"]);
    }

    #[test]
    fn every_node_is_asked_in_turn_those_too_that_only_a_hint_named() {
        let mut route = route();
        route.leads(0, "d:1".to_owned());
        let mut asked = Vec::new();
        for _ in 0..5 {
            let address = route.of(0);
            route.failed(0, &address);
            asked.push(address);
        }
        assert_eq!(asked, ["d:1", "a:1", "b:1", "c:1", "d:1"]);
    }

    #[test]
    fn a_request_that_fails_late_does_not_undo_what_another_has_learnt() {
        let mut route = route();
        route.leads(0, "b:1".to_owned());
        route.failed(0, "a:1");
        assert_eq!(route.of(0), "b:1");
    }
}
