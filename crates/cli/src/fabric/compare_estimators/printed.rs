//! What `dray fabric compare-estimators` prints.

use dray_pcie::Topology;

use super::{Args, Row};
use crate::print;

pub(super) fn table(args: &Args, topology: &Topology, rows: &[Row]) -> String {
    let head = [
        "arbiter",
        "queues",
        "instances",
        "ecr",
        "maxmin",
        "ingress",
        "ecr - ingress",
        "maxmin - ingress",
        "off ecr",
        "off maxmin",
        "off ingress",
        "unsettled",
        "ingress there",
    ];
    let mut table = print::plain(head);
    let percent = |value: f64| format!("{:.2} %", value * 100.0);
    for row in rows {
        let gain = |(mean, half): (f64, f64)| format!("{:.2} ± {:.2}", mean * 100.0, half * 100.0);
        let mut cells = vec![
            row.arbiter.clone(),
            row.queues.clone(),
            row.instances.to_string(),
        ];
        cells.extend(row.mean.map(percent));
        cells.extend(row.gain.map(gain));
        cells.extend(row.off.map(percent));
        cells.push(row.unsettled.to_string());
        cells.push(row.unsettled_error.map_or(String::new(), percent));
        table.add_row(cells);
    }
    print::right(&mut table, 2);
    let flows: Vec<String> = args.flows.iter().map(usize::to_string).collect();
    format!(
        "{}: mean relative error against the simulator, instances of {} flows, seed {}\n{table}\n\
         Differences in percentage points with their 95 % interval; off: flows of which the rate is off by more than a tenth;\n\
         unsettled: instances in which `ingress` ends with means, and its error in these.\n",
        topology.name,
        flows.join(", "),
        args.seed
    )
}

pub(super) fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "arbiter",
        "queues",
        "instances",
        "error_ecr",
        "error_maxmin",
        "error_ingress",
        "ecr_minus_ingress",
        "ecr_minus_ingress_half_interval",
        "maxmin_minus_ingress",
        "maxmin_minus_ingress_half_interval",
        "off_ecr",
        "off_maxmin",
        "off_ingress",
        "unsettled",
        "unsettled_error_ingress",
    ])?;
    for row in rows {
        let mut cells = vec![
            row.arbiter.clone(),
            row.queues.clone(),
            row.instances.to_string(),
        ];
        cells.extend(row.mean.iter().map(f64::to_string));
        cells.extend(
            row.gain
                .iter()
                .flat_map(|(mean, half)| [mean.to_string(), half.to_string()]),
        );
        cells.extend(row.off.iter().map(f64::to_string));
        cells.push(row.unsettled.to_string());
        cells.push(row.unsettled_error.map_or(String::new(), |e| e.to_string()));
        writer.write_record(cells)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
