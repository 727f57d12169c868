//! Reports of crashes, warnings and stalls of the kernel: one finding each, whatever function they
//! stopped in.

use std::io::Cursor;

use dray_doctor::{Explanation, Texts};

fn read(text: &str) -> Explanation {
    let mut texts = Texts::new();
    texts
        .read("log", Cursor::new(text.to_owned().into_bytes()))
        .unwrap();
    texts.finish()
}

/// A report: what it begins with, where it stopped, and its stack.
fn report(begins: &str, stopped: &str, stack: &[&str]) -> String {
    let mut text = format!(
        "[   18.1] ------------[ cut here ]------------\n[   18.1] {begins}\n\
         [   18.1] Modules linked in: idxd(+) idxd_bus wmi\n\
         [   18.1]  intel_sdsi cxl_core idxd soundcore\n\
         [   18.1] CPU: 0 PID: 11 Comm: kworker/0:1 Not tainted 6.12.0-1-amd64\n\
         [   18.1] RIP: 0010:{stopped}+0xd3/0x130\n[   18.1] Call Trace:\n[   18.1]  <TASK>\n"
    );
    for frame in stack {
        text += &format!("[   18.1]  ? {frame}\n");
    }
    text + "[   18.1]  </TASK>\n[   18.1] ---[ end trace 0000000000000000 ]---\n"
}

/// What begins it, where it stopped, its stack, and words of what is said of it.
const KNOWN: [(&str, &str, &[&str], &str); 13] = [
    (
        "BUG: kernel NULL pointer dereference, address: 0000000000000038",
        "iommu_sva_bind_device",
        &["idxd_pci_probe+0x259/0x1070 [idxd]"],
        "8ffccd119a59",
    ),
    (
        "BUG: kernel NULL pointer dereference, address: 0000000000000060",
        "bus_add_device",
        &["device_add+0x3ee/0x850", "idxd_pci_probe+0xf77/0x1180"],
        "CONFIG_INTEL_IDXD=m",
    ),
    (
        "ida_free called for id=0 which is not allocated.",
        "ida_free",
        &["idxd_pci_probe+0x1b0/0x1860 [idxd]"],
        "kdump kernel",
    ),
    (
        "refcount_t: underflow; use-after-free.",
        "refcount_warn_saturate",
        &[
            "idxd_remove+0xe4/0x120 [idxd]",
            "idxd_exit_module+0x34/0x7a0 [idxd]",
        ],
        "f41c538881ee",
    ),
    (
        "WARNING: CPU: 0 PID: 11 at kernel/workqueue.c:1 __queue_work+0x2b2/0x440",
        "__queue_work",
        &[
            "queue_work_on+0x28/0x30",
            "idxd_misc_thread+0x303/0x5a0 [idxd]",
        ],
        "CVE-2024-35991",
    ),
    (
        "divide error: 0000 [#1] PREEMPT SMP NOPTI",
        "rebalance_wq_table.part.0",
        &["rebalance_wq_table.part.0+0x163/0x220 [iaa_crypto]"],
        "CVE-2024-26945",
    ),
    (
        "BUG: unable to handle page fault for address: ff110010c4237000",
        "dmar_fault_dump_ptes",
        &["dmar_fault+0x1/0x2"],
        "kdump",
    ),
    (
        "Oops: general protection fault, probably for non-canonical address 0xdffffc0000000006: 0000",
        "idxd_device_config_restore",
        &["idxd_reset_done+0x1/0x2 [idxd]"],
        "52d2edea0d63",
    ),
    (
        "BUG: KASAN: slab-use-after-free in idxd_dma_complete_txd+0x418/0x510 [idxd]",
        "kasan_report",
        &[
            "idxd_wq_free_irq+0xcd/0x330 [idxd]",
            "idxd_device_drv_remove+0xa0/0x240 [idxd]",
        ],
        "Linux 7.0",
    ),
    (
        "INFO: task accel-config:4711 blocked for more than 120 seconds.",
        "__schedule",
        &["idxd_cmd_exec+0x1/0x2 [idxd]"],
        "does not end",
    ),
    (
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [irq/155-idxd-mi:4711]",
        "delay_tsc",
        &[],
        "keeps a processor busy",
    ),
    (
        "kernel BUG at mm/slub.c:1!",
        "kfree",
        &["idxd_wq_free_resources+0x1/0x2 [idxd]"],
        "in the driver: kfree",
    ),
    (
        "WARNING: drivers/iommu/intel/pasid.c:253 at intel_pasid_get_entry+0xcd/0xe0, CPU#1: x/1",
        "intel_pasid_get_entry",
        &[],
        "remapping unit",
    ),
];

#[test]
fn a_report_of_a_crash_is_one_finding_by_its_stack() {
    for (begins, stopped, stack, says) in KNOWN {
        let explanation = read(&report(begins, stopped, stack));
        let [finding] = explanation.findings.as_slice() else {
            panic!("{begins}: {explanation:?}")
        };
        assert_eq!(explanation.unknown.count, 0, "{begins}: {explanation:?}");
        let said = format!("{} {}", finding.what, finding.fix.advice);
        assert!(said.contains(says), "{begins}: {said}");
        assert_eq!(finding.count, 1, "{begins}");
        assert!(finding.seen[0].says.contains(begins), "{finding:?}");
    }
}

#[test]
fn two_reports_are_two_findings_and_a_stack_alone_is_one() {
    let first = report(KNOWN[8].0, KNOWN[8].1, KNOWN[8].2);
    let second = report(KNOWN[7].0, KNOWN[7].1, KNOWN[7].2);
    let repeated = "[   19.0] RIP: 0010:idxd_device_config_restore+0xfe/0x1180 [idxd]\n";
    let explanation = read(&format!("{first}{second}{repeated}"));
    assert_eq!(explanation.findings.len(), 2, "{explanation:?}");
    // What `dmesg | grep idxd` leaves of a report.
    let explanation = read(
        "[ 1.0] Modules linked in: idxd(+) idxd_bus\n[ 1.0]  idxd_wq_free_irq+0xcd/0x330 [idxd]\n\
         [ 1.0]  idxd_drv_disable_wq+0x125/0x2d0 [idxd]\n",
    );
    assert_eq!(explanation.findings.len(), 1, "{explanation:?}");
    assert_eq!(explanation.findings[0].count, 1);
}

#[test]
fn reports_of_other_drivers_are_left_alone() {
    for (begins, stopped) in [
        (
            "BUG: kernel NULL pointer dereference, address: 0000000000000038",
            "nvme_probe",
        ),
        (
            "refcount_t: underflow; use-after-free.",
            "refcount_warn_saturate",
        ),
        (
            "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [swapper/3:0]",
            "delay_tsc",
        ),
        (
            "INFO: task jbd2:1 blocked for more than 120 seconds.",
            "__schedule",
        ),
    ] {
        let explanation = read(&report(begins, stopped, &["nvme_remove+0x1/0x2 [nvme]"]));
        assert_eq!(explanation.findings, [], "{begins}");
        assert_eq!(explanation.unknown.count, 0, "{begins}: {explanation:?}");
    }
    // Words of a report in the sentences of a person.
    let explanation =
        read("This fixes a use-after-free. It triggers a NULL pointer dereference.\n");
    assert_eq!(explanation.findings, []);
}
