//! `dray fabric import`: a topology file from a machine.

use std::path::PathBuf;
use std::process::ExitCode;

use dray_output::Output;

use crate::print;
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric import > here.toml               this machine's PCI tree
  dray fabric import captured/sys --name rack7 a captured copy: DIR/devices/pci0000:00/...
  lstopo --whole-io --of xml node.xml && dray fabric import node.xml
  dray fabric import nccl.xml   NCCL's or RCCL's topology (NCCL_TOPO_DUMP_FILE)
  nvidia-smi topo -m > topo.txt && dray fabric import topo.txt
  sudo lspci -vvnn > lspci.txt && dray fabric import lspci.txt

As root sysfs and lspci have MPS and MRRS, too; what cannot be read is marked
`unread` in the file. An idle GPU's link runs slower than it can: the file has
the higher speed, and a note names both; hwloc's XML has none, which a note says.
Of more than two NUMA nodes without packages two sockets are made. NVLink and
xGMI are not in the file, nor what a root complex forwards between devices:
[host.timing] peer_write_gib_s.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// sysfs, a directory that holds a copy of it, or a file that a tool wrote: see the examples.
    #[arg(value_name = "DIR|FILE", default_value = "/sys")]
    from: PathBuf,
    /// Name of the topology.
    #[arg(long, value_name = "NAME", default_value = "imported")]
    name: String,
    /// Write the file here instead of to stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let imported = dray_pcie::import(&args.from, &args.name)?;
    for note in &imported.notes {
        eprintln!("note: {note}");
    }
    match out {
        Some(out) => out.write(imported.toml.as_bytes())?,
        None => print::all(&mut Stdout, &imported.toml)?,
    }
    Ok(ExitCode::SUCCESS)
}
