//! Reports of crashes, warnings and stalls of the kernel: one finding each, whatever function they
//! stopped in.

use std::io::Cursor;

use dray_doctor::{Explanation, Severity, Texts};

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

#[test]
fn functions_of_the_driver_in_listings_are_no_crash() {
    for text in [
        "ffffffffc0a5b1c0 t idxd_pci_probe [idxd]\nffffffffc0a5b2c0 t idxd_remove [idxd]\n",
        "idxd_pci_probe [idxd]\nidxd_remove [idxd]\n",
        "accel-config 4711 [001] 1234.5: 1 cycles:\n  ffffffffc0a5c0d4 idxd_desc_read+0x20 ([idxd])\n",
        "     12.34%  accel-config  [idxd]  [k] idxd_desc_read\n",
        "[<0>] idxd_cmd_exec+0x7a/0x120 [idxd]\n",
        "[ 1.0] initcall idxd_init_module+0x0/0x1000 [idxd] returned 0 after 11 usecs\n",
    ] {
        let explanation = read(text);
        assert_eq!(explanation.findings, [], "{text}");
        assert_eq!(explanation.crashed, [], "{text}");
    }
    // A stack that SysRq-w prints may be one of a healthy system.
    let explanation = read(
        "[ 9.1] task:accel-config state:D stack:0 pid:4711\n[ 9.1] Call Trace:\n[ 9.1]  <TASK>\n\
         [ 9.1]  __schedule+0x1/0x2\n[ 9.1]  idxd_cmd_exec+0x1/0x2 [idxd]\n[ 9.1]  </TASK>\n",
    );
    assert_eq!(explanation.worst(), Some(Severity::Note), "{explanation:?}");
    assert!(
        explanation.findings[0].what.contains("SysRq"),
        "{explanation:?}"
    );
}

#[test]
fn what_is_printed_behind_a_report_is_not_of_it() {
    let hung = "[ 120.0] INFO: task jbd2/sda1-8:311 blocked for more than 120 seconds.\n\
                [ 120.0] Call Trace:\n[ 120.0]  <TASK>\n[ 120.0]  __schedule+0x1/0x2\n";
    for (end, count) in [
        ("[ 120.0]  </TASK>\n", 1),
        // Kernels before 5.16 have no such line.
        ("[ 121.0] eth0: link is up\n", 1),
    ] {
        let explanation = read(&format!(
            "{hung}{end}[ 124.0] idxd 0000:6a:01.0: a new thing in idxd_wq_enable [idxd]\n"
        ));
        assert_eq!(explanation.findings, [], "{explanation:?}");
        assert_eq!(explanation.unknown.count, count, "{explanation:?}");
        let explanation = read(&format!(
            "{hung}{end}[ 124.0] idxd: nothing to do\n[ 124.0] idxd is new and has no colon\n"
        ));
        assert_eq!(explanation.unknown.count, 2, "{explanation:?}");
    }
    // An Oops names modules behind its stack, and where it stopped once more.
    let explanation = read(
        "[ 1.0] BUG: kernel NULL pointer dereference, address: 0000000000000038\n\
         [ 1.0] RIP: 0010:kfree+0x1/0x2\n[ 1.0] Call Trace:\n[ 1.0]  <TASK>\n\
         [ 1.0]  idxd_wq_free+0x1/0x2 [idxd]\n[ 1.0]  </TASK>\n[ 1.0] Modules linked in: idxd(+) wmi\n\
         [ 1.0]  intel_sdsi idxd soundcore\n[ 1.0] CR2: 0000000000000038\n\
         [ 1.0] ---[ end trace 0000000000000000 ]---\n[ 1.0] RIP: 0010:kfree+0x1/0x2\n\
         [ 1.0] idxd has come back\n",
    );
    assert_eq!(explanation.findings.len(), 1, "{explanation:?}");
    assert_eq!(explanation.findings[0].count, 1);
    assert_eq!(explanation.unknown.count, 1, "{explanation:?}");
    // Registers within a stack, and who had the memory before, are of it.
    let explanation = read(
        "[ 1.0] BUG: KASAN: slab-use-after-free in kfree+0x1/0x2\n[ 1.0] Call Trace:\n[ 1.0]  <TASK>\n\
         [ 1.0]  kasan_report+0x1/0x2\n[ 1.0] RIP: 0033:0x7f0000000000\n[ 1.0] RAX: ffffffffffffffda RBX: 0\n\
         [ 1.0]  </TASK>\n[ 1.0] Freed by task 11 on cpu 0 at 1.0s:\n[ 1.0]  kfree+0x1/0x2\n\
         [ 1.0]  idxd_remove+0x1/0x2 [idxd]\n[ 1.0] ==========\n",
    );
    assert_eq!(explanation.findings.len(), 1, "{explanation:?}");
    assert!(explanation.findings[0].what.contains("freed before"));
}

#[test]
fn a_warning_of_the_remapping_unit_is_no_error_where_no_dsa_is_named() {
    let text = report(
        "WARNING: CPU: 0 PID: 11 at drivers/iommu/intel/iommu.c:1 domain_flush+0x1/0x2",
        "domain_flush",
        &["i915_gem_fault+0x1/0x2 [i915]"],
    );
    let alone = text.replace(" idxd(+) idxd_bus", "").replace(" idxd ", " ");
    assert_eq!(read(&alone).worst(), Some(Severity::Warning));
    assert_eq!(read(&text).worst(), Some(Severity::Error));
}
