//! Other ways to the same rates: the paper's rounds, and linear programs.

use dray_flow::{FlowId, Flows};
use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};

/// Edge constraints relaxing in rounds, as Algorithms 1 and 2 write it. Constraint lists are emptied every round, and an edge is
/// overloaded from a relative excess of 1e-9 on. Returns the rates and the number of rounds.
pub(crate) fn ecr_rounds(flows: &Flows<'_>) -> (Vec<f64>, usize) {
    let count = flows.len();
    let paths: Vec<Vec<usize>> = (0..count)
        .map(|flow| {
            flows
                .get(FlowId(flow as u32))
                .path
                .iter()
                .map(|edge| edge.index())
                .collect()
        })
        .collect();
    let mut target: Vec<f64> = (0..count)
        .map(|flow| flows.get(FlowId(flow as u32)).demand)
        .collect();
    let edges = flows.network().edges();
    let on = |edge: usize| -> Vec<usize> {
        (0..count)
            .filter(|&flow| paths[flow].contains(&edge))
            .collect()
    };
    let mut table: Vec<usize> = (0..edges.len())
        .filter(|&edge| !on(edge).is_empty())
        .collect();
    let mut rounds = 0;
    while !table.is_empty() {
        rounds += 1;
        assert!(rounds < 10_000, "the rounds end");
        let mut constraints: Vec<Vec<f64>> = vec![Vec::new(); count];
        table.retain(|&edge| {
            let members = on(edge);
            let capacity = edges[edge].capacity();
            let sum: f64 = members.iter().map(|&flow| target[flow]).sum();
            if sum <= capacity * (1.0 + 1e-9) {
                return false;
            }
            let (mut open, mut rest) = (members, capacity);
            loop {
                let share = rest / open.len() as f64;
                let (granted, left): (Vec<usize>, Vec<usize>) =
                    open.iter().partition(|&&flow| target[flow] <= share);
                if granted.is_empty() {
                    for flow in left {
                        constraints[flow].push(share);
                    }
                    break;
                }
                for flow in granted {
                    rest -= target[flow];
                    constraints[flow].push(target[flow]);
                }
                open = left;
            }
            true
        });
        for flow in 0..count {
            if let Some(largest) = constraints[flow].iter().copied().reduce(f64::max) {
                target[flow] = largest;
            }
        }
    }
    (target, rounds)
}

/// Max-min rates by linear programs: raise the least level as far as it goes; freeze each flow that cannot get
/// more than that level; repeat.
pub(crate) fn lp_maxmin(flows: &Flows<'_>) -> Vec<f64> {
    let count = flows.len();
    let mut frozen: Vec<Option<f64>> = vec![None; count];
    while frozen.iter().any(Option::is_none) {
        let level = raise(flows, &frozen, None);
        let open: Vec<usize> = (0..count).filter(|&flow| frozen[flow].is_none()).collect();
        let mut froze = false;
        for flow in open {
            let weight = flows.get(FlowId(flow as u32)).weight;
            let best = raise(flows, &frozen, Some((flow, level)));
            if best <= weight * level * (1.0 + 1e-7) {
                frozen[flow] = Some(weight * level);
                froze = true;
            }
        }
        assert!(froze, "each linear program freezes a flow");
    }
    frozen.into_iter().flatten().collect()
}

/// The greatest level that all open flows can have; or, with `(flow, level)`, the greatest rate of that flow while all open
/// ones have the level.
fn raise(flows: &Flows<'_>, frozen: &[Option<f64>], one: Option<(usize, f64)>) -> f64 {
    let mut vars = variables!();
    let level = vars.add(variable().min(0.0));
    let rates: Vec<_> = (0..flows.len())
        .map(|flow| {
            let flow = flows.get(FlowId(flow as u32));
            vars.add(variable().min(0.0).max(flow.demand.min(1e6)))
        })
        .collect();
    let goal: Expression = one.map_or(level.into(), |(flow, _)| rates[flow].into());
    let mut model = vars.maximise(&goal).using(microlp);
    for (flow, &rate) in rates.iter().enumerate() {
        let weight = flows.get(FlowId(flow as u32)).weight;
        match (frozen[flow], one) {
            (Some(at), _) => model = model.with(constraint!(rate == at)),
            (None, None) => model = model.with(constraint!(rate >= weight * level)),
            (None, Some((_, at))) => {
                model = model.with(constraint!(rate >= weight * at * (1.0 - 1e-12)))
            }
        }
    }
    if one.is_some() {
        model = model.with(constraint!(level == 0.0));
    }
    for (index, edge) in flows.network().edges().iter().enumerate() {
        let load: Expression = rates
            .iter()
            .enumerate()
            .filter(|&(flow, _)| {
                flows
                    .get(FlowId(flow as u32))
                    .path
                    .iter()
                    .any(|at| at.index() == index)
            })
            .map(|(_, &rate)| Expression::from(rate))
            .sum();
        model = model.with(constraint!(load <= edge.capacity()));
    }
    let solution = model.solve().expect("the linear program has a solution");
    solution.eval(&goal)
}
