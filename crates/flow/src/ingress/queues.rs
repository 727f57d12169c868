//! The queues of a set of flows, and what makes them wait.

use std::collections::BTreeMap;

use crate::flows::Flows;
use crate::port::Queues;

/// What distinguishes queues: where the bytes come from, and where they go if that has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// From an edge to any other.
    Edge(u32),
    /// From an edge to another.
    Pair(u32, u32),
    /// From a source to an edge.
    Source(u32, u32),
    /// From a flow that is its own source.
    Flow(u32),
}

/// A queue, in which all bytes wait equally long.
#[derive(Debug)]
pub(super) struct Queue {
    /// The edge over which bytes come into it; none at a source.
    pub(super) feed: Option<u32>,
    /// Bytes that it holds.
    pub(super) buffer: f64,
    /// Time beside its waiting that a byte takes room for.
    pub(super) round: f64,
    /// Flows that pass it.
    pub(super) flows: Vec<u32>,
    /// Claims on it.
    pub(super) claims: Vec<u32>,
    /// When the waiting of one of its flows changed last, here or elsewhere.
    pub(super) changed: u64,
}

/// What lets through only so much: an edge, or a full buffer.
#[derive(Debug)]
pub(super) struct Constraint {
    /// The edge in front of which the bytes wait.
    pub(super) edge: u32,
    /// The claim of which the buffer is full; none for the capacity of the edge and for a round of credits.
    pub(super) parent: Option<u32>,
    /// What it lets through.
    pub(super) capacity: f64,
    pub(super) claims: Vec<u32>,
    /// What each ingress got at most, or waited, the last time.
    pub(super) level: f64,
    /// When it was solved last; 0 if it must be solved whatever has changed.
    pub(super) solved: u64,
}

/// The part of a queue that is for one constraint.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) constraint: u32,
    pub(super) queue: u32,
    /// Flows of the queue that pass the constraint.
    pub(super) flows: Vec<u32>,
    /// Flows of the queue that take the edge, where those that pass the constraint are only part of them.
    pub(super) over: Vec<u32>,
    /// How long the constraint makes the queue wait.
    pub(super) wait: f64,
    /// What it would be without the other claims on the queue, the last time.
    pub(super) guess: f64,
    /// The constraint that stands for the full buffer of the queue.
    pub(super) held_by: Option<u32>,
}

/// All of it.
pub(super) struct Structure {
    pub(super) queues: Vec<Queue>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) claims: Vec<Claim>,
    /// By hop of all flows: the queue in front of the edge.
    pub(super) queue_of: Vec<u32>,
}

impl Structure {
    pub(super) fn new(flows: &Flows<'_>) -> Self {
        let network = flows.network();
        let mut this = Self {
            queues: Vec::new(),
            constraints: Vec::new(),
            claims: Vec::new(),
            queue_of: vec![0; flows.hops().len()],
        };
        let mut known: BTreeMap<Key, u32> = BTreeMap::new();
        let mut waiting: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for flow in 0..flows.len() {
            let mut before = None;
            for at in flows.span(flow) {
                let edge = flows.hops()[at];
                let key = match before {
                    Some(feed) => match network.port(feed).queues {
                        Queues::PerOutput => Key::Pair(feed, edge),
                        Queues::Fifo => Key::Edge(feed),
                    },
                    None => match flows.source(flow) {
                        Some(source) => Key::Source(source, edge),
                        None => Key::Flow(flow as u32),
                    },
                };
                let queue = *known.entry(key).or_insert_with(|| {
                    let port = before.map(|feed| network.port(feed));
                    this.queues.push(Queue {
                        feed: before,
                        buffer: port.and_then(|port| port.buffer).unwrap_or(f64::INFINITY),
                        round: port.map_or(0.0, |port| port.round),
                        flows: Vec::new(),
                        claims: Vec::new(),
                        changed: 1,
                    });
                    this.queues.len() as u32 - 1
                });
                this.queues[queue as usize].flows.push(flow as u32);
                this.queue_of[at] = queue;
                waiting.entry((edge, queue)).or_default().push(flow as u32);
                before = Some(edge);
            }
        }
        let mut last = None;
        for ((edge, queue), list) in waiting {
            if last != Some(edge) {
                this.constraints.push(Constraint {
                    edge,
                    parent: None,
                    capacity: flows.capacity(edge as usize),
                    claims: Vec::new(),
                    level: 0.0,
                    solved: 0,
                });
                last = Some(edge);
            }
            let constraint = this.constraints.len() as u32 - 1;
            this.add_claim(constraint, queue, list, Vec::new());
        }
        for queue in 0..this.queues.len() as u32 {
            this.limit_by_credits(queue, flows);
        }
        this
    }

    /// Adds what the credits of a queue let through even if nothing waits there: its buffer once in a round of credits, for all
    /// its flows together.
    fn limit_by_credits(&mut self, queue: u32, flows: &Flows<'_>) {
        let Queue {
            feed: Some(edge),
            buffer,
            round,
            ..
        } = self.queues[queue as usize]
        else {
            return;
        };
        if buffer < round * flows.capacity(edge as usize) {
            self.add_before(queue, edge, None, buffer / round, flows);
        }
    }

    fn add_claim(&mut self, constraint: u32, queue: u32, flows: Vec<u32>, over: Vec<u32>) {
        let id = self.claims.len() as u32;
        self.claims.push(Claim {
            constraint,
            queue,
            flows,
            over,
            wait: 0.0,
            guess: 0.0,
            held_by: None,
        });
        self.queues[queue as usize].claims.push(id);
        self.constraints[constraint as usize].claims.push(id);
    }

    /// The constraint that stands for the full buffer of the queue of `claim`; made if there is none. Gives none where there is
    /// no buffer, at a source, and where the queue waits for itself in a ring.
    pub(super) fn hold(&mut self, claim: u32, flows: &Flows<'_>) -> Option<u32> {
        let Claim { queue, held_by, .. } = self.claims[claim as usize];
        if held_by.is_some() {
            return held_by;
        }
        let edge = self.queues[queue as usize].feed?;
        if self.is_held_by_itself(claim) {
            return None;
        }
        let id = self.add_before(queue, edge, Some(claim), f64::INFINITY, flows);
        self.claims[claim as usize].held_by = Some(id);
        Some(id)
    }

    /// Adds a constraint in front of `edge` on all flows that go over it into `queue`.
    fn add_before(
        &mut self,
        queue: u32,
        edge: u32,
        parent: Option<u32>,
        capacity: f64,
        flows: &Flows<'_>,
    ) -> u32 {
        let id = self.constraints.len() as u32;
        self.constraints.push(Constraint {
            edge,
            parent,
            capacity,
            claims: Vec::new(),
            level: 0.0,
            solved: 0,
        });
        let before = |flow: u32| {
            let at = flows
                .span(flow as usize)
                .find(|&at| flows.hops()[at] == edge);
            at.map(|at| self.queue_of[at])
        };
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &flow in &self.queues[queue as usize].flows {
            if let Some(queue) = before(flow) {
                parts.entry(queue).or_default().push(flow);
            }
        }
        let parts: Vec<_> = parts
            .into_iter()
            .map(|(queue, part)| {
                let all = self.queues[queue as usize].flows.iter().copied();
                let over = all.filter(|&flow| flows.path(flow as usize).contains(&edge));
                let mut over: Vec<u32> = over.collect();
                if over.len() == part.len() {
                    over.clear();
                }
                (queue, part, over)
            })
            .collect();
        for (queue, part, over) in parts {
            self.add_claim(id, queue, part, over);
        }
        id
    }

    /// Whether the claim is there because the queue itself is full: buffers hold each other in a ring.
    fn is_held_by_itself(&self, claim: u32) -> bool {
        let mut at = claim;
        loop {
            let constraint = self.claims[at as usize].constraint;
            match self.constraints[constraint as usize].parent {
                None => return false,
                Some(parent) => at = parent,
            }
            if self.claims[at as usize].queue == self.claims[claim as usize].queue {
                return true;
            }
        }
    }

    /// Whether `claim` is there because of a full buffer that `cause` fills.
    fn follows(&self, claim: u32, cause: u32) -> bool {
        let parent = |claim: u32| {
            let constraint = self.claims[claim as usize].constraint;
            self.constraints[constraint as usize].parent
        };
        let mut at = parent(claim);
        while let Some(here) = at {
            if here == cause {
                return true;
            }
            at = parent(here);
        }
        false
    }

    /// How long bytes wait in a queue. What `without` causes there and in queues before it does not count.
    pub(super) fn wait(&self, queue: u32, without: Option<u32>) -> f64 {
        let claims = self.queues[queue as usize].claims.iter();
        claims
            .filter(|&&claim| {
                let claim_wait = self.claims[claim as usize].wait;
                claim_wait > 0.0
                    && without.is_none_or(|cause| claim != cause && !self.follows(claim, cause))
            })
            .map(|&claim| self.claims[claim as usize].wait)
            .fold(0.0, f64::max)
    }

    /// Queues other than that of `claim` whose waiting it causes in part, because its queue is full.
    pub(super) fn queues_behind(&self, claim: u32, found: &mut Vec<u32>) {
        let Some(held_by) = self.claims[claim as usize].held_by else {
            return;
        };
        for &behind in &self.constraints[held_by as usize].claims {
            found.push(self.claims[behind as usize].queue);
            self.queues_behind(behind, found);
        }
    }

    /// The edge because of which a claim waits.
    pub(super) fn cause(&self, claim: u32) -> u32 {
        let mut constraint = self.claims[claim as usize].constraint;
        while let Some(parent) = self.constraints[constraint as usize].parent {
            constraint = self.claims[parent as usize].constraint;
        }
        self.constraints[constraint as usize].edge
    }
}
