//! The tree that `nvidia-smi topo -m` implies: which GPUs and NICs share a switch, a root complex, a NUMA node.

use std::collections::BTreeMap;

use super::tree::{PciNode, Tree};
use crate::PcieError;
use crate::error::syntax;

/// Devices of a matrix at most.
const MAX_DEVICES: usize = 1024;

/// How near two devices are, the nearest first (the legend of `nvidia-smi topo -m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Near {
    /// One switch.
    Pix,
    /// Several switches.
    Pxb,
    /// A host bridge.
    Phb,
    /// One NUMA node.
    Node,
    /// Between NUMA nodes.
    Sys,
    /// NVLink, of which PCIe's part is not said.
    Other,
}

impl Near {
    fn parse(word: &str) -> Option<Near> {
        Some(match word {
            "PIX" => Near::Pix,
            "PXB" => Near::Pxb,
            "PHB" => Near::Phb,
            "NODE" => Near::Node,
            "SYS" | "SOC" => Near::Sys,
            _ if word
                .strip_prefix("NV")
                .is_some_and(|n| n.parse::<u32>().is_ok()) =>
            {
                Near::Other
            }
            _ => return None,
        })
    }
}

/// A row of the matrix.
struct Row {
    name: String,
    near: Vec<Option<Near>>,
    numa: Option<u32>,
}

/// Whether a text is such a matrix.
pub(super) fn is_one(text: &str) -> bool {
    plain(text).lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(is_device)
            && words.any(|word| matches!(word, "X" | "PIX" | "PXB" | "PHB" | "NODE" | "SYS"))
    })
}

fn is_device(word: &str) -> bool {
    ["GPU", "NIC", "mlx", "bnxt", "efa", "rdma", "ib", "hfi"]
        .iter()
        .any(|kind| {
            word.strip_prefix(kind)
                .is_some_and(|rest| rest.bytes().any(|byte| byte.is_ascii_digit()))
        })
}

pub(super) fn read(text: &str, file: &str) -> Result<Tree, PcieError> {
    let rows = rows(text, file)?;
    let mut numa: Vec<Option<u32>> = rows.iter().map(|row| row.numa).collect();
    let direct = rows
        .iter()
        .flat_map(|row| &row.near)
        .filter(|near| **near == Some(Near::Other))
        .count()
        / 2;
    // Those that share a switch, or a NUMA node, have the NUMA node of one of them.
    let nodes = groups(&rows, Near::Node);
    for members in &nodes {
        let known = members.iter().find_map(|member| numa[*member]);
        for member in members {
            numa[*member] = numa[*member].or(known);
        }
    }
    if numa.iter().all(Option::is_none) {
        for (index, members) in nodes.iter().enumerate() {
            for member in members {
                numa[*member] = Some(index as u32);
            }
        }
    }
    let mut tree = Tree::default();
    let switches_of = groups(&rows, Near::Pix);
    // Switches of switches: PXB is between switches below one port of the root complex.
    for (outer, cascade) in groups(&rows, Near::Pxb).into_iter().enumerate() {
        let inner: Vec<&Vec<usize>> = switches_of
            .iter()
            .filter(|members| cascade.contains(&members[0]))
            .collect();
        let place = numa[cascade[0]];
        let switches = inner.iter().enumerate().map(|(index, members)| {
            let devices = members
                .iter()
                .map(|member| port(device(&rows[*member], place)));
            match members.len() {
                1 if cascade.len() == 1 => port(device(&rows[members[0]], place)),
                _ => port(switch(
                    format!("switch{outer}.{index}"),
                    place,
                    devices.collect(),
                )),
            }
        });
        let switches: Vec<PciNode> = switches.collect();
        match switches.len() {
            1 => tree.roots.extend(switches),
            _ => tree
                .roots
                .push(port(switch(format!("switch{outer}"), place, switches))),
        }
    }
    tree.notes.push(
        "nvidia-smi does not say how fast a link is: `[link_defaults]` with `generation = 5` and `width = 16` \
         sets all, before the first `[[link]]`"
            .to_owned(),
    );
    if direct > 0 {
        tree.left_out.insert("nvlink");
        let what = dray_output::counted(direct, "pair");
        tree.notes.push(format!(
            "{what} of GPUs have NVLink between them, which is left out; their way over PCIe is that of their NUMA nodes"
        ));
    }
    Ok(tree)
}

fn device(row: &Row, numa: Option<u32>) -> PciNode {
    PciNode {
        address: row.name.clone(),
        class: if row.name.starts_with("GPU") {
            0x03_0200
        } else {
            0x02_0000
        },
        numa,
        ..PciNode::default()
    }
}

fn switch(address: String, numa: Option<u32>, below: Vec<PciNode>) -> PciNode {
    PciNode {
        address,
        class: 0x06_0400,
        numa,
        below,
        ..PciNode::default()
    }
}

/// The port above a device.
fn port(node: PciNode) -> PciNode {
    switch(String::new(), node.numa, vec![node])
}

/// Devices that are as near as `most`, or have one that is between them.
fn groups(rows: &[Row], most: Near) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..rows.len()).collect();
    for (a, row) in rows.iter().enumerate() {
        for (b, near) in row.near.iter().enumerate() {
            if b < rows.len() && near.is_some_and(|near| near <= most) && group[a] != group[b] {
                let (from, to) = (group[a].max(group[b]), group[a].min(group[b]));
                group
                    .iter_mut()
                    .filter(|place| **place == from)
                    .for_each(|place| *place = to);
            }
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, place) in group.into_iter().enumerate() {
        members.entry(place).or_default().push(index);
    }
    members.into_values().collect()
}

fn rows(text: &str, file: &str) -> Result<Vec<Row>, PcieError> {
    let plain = plain(text);
    let mut lines = plain.lines();
    let header = lines.by_ref().find(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(is_device)
            && words
                .next()
                .is_none_or(|word| Near::parse(word).is_none() && word != "X")
    });
    let fail = |rule: String| Err(syntax(file, rule));
    let Some(header) = header else {
        return fail(
            "has no line with the names of the devices, as `nvidia-smi topo -m` writes it"
                .to_owned(),
        );
    };
    let columns: Vec<&str> = header
        .split_whitespace()
        .take_while(|word| is_device(word))
        .collect();
    if columns.len() > MAX_DEVICES {
        return fail(format!("more than {MAX_DEVICES} devices"));
    }
    // The column of the NUMA node comes after the list of CPUs, if there is one.
    let has_numa = header.contains("NUMA Affinity");
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        // What follows is of another command, such as `nvidia-smi topo -p2p r`.
        if rows.len() == columns.len() {
            break;
        }
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|word| columns.contains(word)) else {
            continue;
        };
        let words: Vec<&str> = words.collect();
        if words.len() < columns.len() {
            return fail(format!(
                "{name} has {} cells of {}",
                words.len(),
                columns.len()
            ));
        }
        let cell = |word: &&str| match *word {
            "X" => Ok(None),
            word => Near::parse(word).map(Some).ok_or_else(|| {
                let legend = "X, PIX, PXB, PHB, NODE, SYS or NV and a number";
                syntax(
                    file,
                    format!("{name}: `{}` is not {legend}", word.escape_debug()),
                )
            }),
        };
        let near: Result<Vec<Option<Near>>, PcieError> =
            words[..columns.len()].iter().map(cell).collect();
        let numa = words.get(columns.len() + 1).filter(|_| has_numa);
        if rows.iter().any(|row| row.name == name) {
            return fail(format!("{name} has two rows"));
        }
        rows.push(Row {
            name: name.to_owned(),
            near: near?,
            numa: numa.and_then(|word| word.split(['-', ',']).next()?.parse().ok()),
        });
    }
    match rows.len() == columns.len() {
        true => Ok(rows),
        false => fail(format!(
            "has {} rows of {} devices",
            rows.len(),
            columns.len()
        )),
    }
}

/// The text without commands of a terminal, on which the header is underlined, and without the bars of a table in Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain += rest;
    // Where a terminal's text was pasted, ESC is lost and the rest of its commands is not.
    for command in ["[4m", "[0m"] {
        plain = plain.replace(command, "");
    }
    match plain.lines().any(|line| line.trim_start().starts_with('|')) {
        true => plain.replace('|', " "),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: &str = "\t\u{1b}[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\u{1b}[0m\n\
        GPU0\t X \tPIX\tSYS\tPXB\t0-31\t0\n\
        GPU1\tPIX\t X \tSYS\tPXB\t0-31\t0\n\
        GPU2\tSYS\tSYS\t X \tSYS\t32-63\t1\n\
        NIC0\tPXB\tPXB\tSYS\t X \t\t\n\nLegend:\n\n  X    = Self\n  PIX  = at most a single PCIe bridge\n";

    fn names(node: &PciNode) -> String {
        let below: Vec<String> = node.below.iter().map(names).collect();
        match (node.address.as_str(), below.len()) {
            ("", _) => below.join(" "),
            (name, 0) => name.to_owned(),
            (name, _) => format!("{name}({})", below.join(" ")),
        }
    }

    #[test]
    fn switches_follow_from_the_words() {
        assert!(is_one(MATRIX));
        let tree = read(MATRIX, "topo.txt").unwrap();
        let roots: Vec<String> = tree.roots.iter().map(names).collect();
        assert_eq!(
            roots,
            ["switch0(switch0.0(GPU0 GPU1) switch0.1(NIC0))", "GPU2"]
        );
        let numa: Vec<Option<u32>> = tree.roots.iter().map(|root| root.numa).collect();
        assert_eq!(numa, [Some(0), Some(1)]);
    }

    #[test]
    fn a_pasted_matrix_is_read_without_the_escape_characters() {
        let pasted = MATRIX.replace('\u{1b}', "");
        assert!(pasted.contains("[4mGPU0") && is_one(&pasted));
        assert_eq!(read(&pasted, "x").unwrap(), read(MATRIX, "x").unwrap());
    }

    #[test]
    fn a_table_in_markdown_and_a_second_matrix_behind_it_are_read() {
        let rows = MATRIX.lines().take(5).map(|line| line.replace('\t', " | "));
        let table: Vec<String> = rows.map(|row| format!("| {row} |")).collect();
        let ruled = table
            .join("\n")
            .replacen('\n', "\n|---|---|---|---|---|---|---|\n", 1);
        assert!(is_one(&ruled), "{ruled}");
        assert_eq!(read(&ruled, "x").unwrap(), read(MATRIX, "x").unwrap());
        let more =
            format!("{MATRIX}\n$ nvidia-smi topo -p2p r\n\tGPU0\tGPU1\tGPU2\nGPU0\tX\tOK\tOK\n");
        assert_eq!(read(&more, "x").unwrap(), read(MATRIX, "x").unwrap());
    }

    #[test]
    fn matrices_that_are_cut_are_errors() {
        for bad in [
            "\tGPU0\tGPU1\nGPU0\t X \tPIX\n",
            "\tGPU0\tGPU1\nGPU0\t X \n",
            "\tGPU0\tGPU1\nGPU0\t X \tABC\nGPU1\tPIX\t X \n",
            "GPU0\tPIX\n",
            "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU0\t X \tPIX\n",
        ] {
            assert!(read(bad, "topo.txt").is_err(), "{bad}");
        }
    }
}
