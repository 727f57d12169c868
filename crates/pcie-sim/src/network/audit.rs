//! Whether all credits are there.

use super::Network;
use crate::tlp::Tlp;

impl Network {
    /// Checks that no credit was made or lost, and that none is below zero.
    pub(crate) fn audit(&self) -> Result<(), String> {
        for (index, edge) in self.edges.iter().enumerate() {
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
