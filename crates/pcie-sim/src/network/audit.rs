//! Whether all credits are there, and all edges at work.

use super::Network;
use crate::tlp::Tlp;

impl Network {
    /// Checks that no credit was made or lost, that none is below zero, and that no edge is idle while a TLP can go.
    pub(crate) fn audit(&self) -> Result<(), String> {
        for (index, edge) in self.edges.iter().enumerate() {
            let is_idle = edge.busy_until < self.now;
            if is_idle && self.arbitrate(index as u32).is_some() {
                return Err(format!("edge {index} is idle, and a TLP can go"));
            }
            let mut pools = edge.pools.clone();
            for pool in &pools {
                if pool
                    .headers
                    .iter()
                    .chain(&pool.data)
                    .any(|count| *count < 0)
                {
                    return Err(format!("edge {index} has fewer than no credits"));
                }
            }
            for back in &edge.returns {
                let pool = &mut pools[back.pool as usize];
                pool.headers[back.class as usize] += 1;
                pool.data[back.class as usize] += back.data;
            }
            let here = |tlp: &&Tlp| tlp.came_by == index as u32;
            for tlp in self.tlps.iter_alive().filter(here) {
                let pool = &mut pools[tlp.pool as usize];
                pool.headers[tlp.class as usize] += 1;
                pool.data[tlp.class as usize] += tlp.data_credits();
            }
            if let Some(wrong) = pools.iter().find(|pool| **pool != edge.full) {
                return Err(format!(
                    "edge {index}: {wrong:?} of {:?} are accounted for",
                    edge.full
                ));
            }
        }
        Ok(())
    }
}
