//! Lines as reports of strangers quote them, and what they are told to do.

use dray_doctor::{Explanation, Severity, Texts};

fn read(text: &'static str) -> Explanation {
    let mut texts = Texts::new();
    texts.read("report", text.as_bytes()).unwrap();
    texts.finish()
}

/// The one finding of a text: what it says, and what to do.
fn one(text: &'static str) -> (String, String) {
    let explanation = read(text);
    assert_eq!(explanation.findings.len(), 1, "{text}: {explanation:?}");
    let finding = &explanation.findings[0];
    (finding.what.clone(), finding.fix.advice.clone())
}

#[test]
fn a_queue_without_a_pasid_is_not_cured_by_touching_pages() {
    let explanation = read(
        "[ 100.1] IOMMU: dmar15: Page request without PASID\n\
         [ 100.1] dmar15: Invalid page request: 6a080001 2000003e9007\n\
         [ 100.1] idxd 0000:6a:01.0: err[0]: 0x0000000300011a2d\n",
    );
    assert_eq!(explanation.findings.len(), 3);
    assert_eq!(explanation.conflicts, [""; 0]);
    for finding in &explanation.findings {
        assert!(finding.fix.advice.contains("pasid_enabled"), "{finding:?}");
        assert!(!finding.fix.advice.contains("Touch the"), "{finding:?}");
    }
    let what = |part: &str| explanation.findings.iter().any(|f| f.what.contains(part));
    assert!(what("the function is 6a:01.0"), "{explanation:?}");
}

#[test]
fn a_queue_that_may_not_be_opened_stands_before_what_follows_from_it() {
    let explanation = read(
        "idxd_perf.c: 1: no available idxd devices\n\
         idxd_kernel.c: 114:dsa_setup_single_wq: *ERROR*: Can not open the Working queue file descriptor on path=/dev/char/235:0\n",
    );
    let [cause, effect] = explanation.findings.as_slice() else {
        panic!("{explanation:?}")
    };
    assert!(cause.what.contains("may not open"), "{cause:?}");
    assert!(effect.fix.advice.contains("that is why"), "{effect:?}");
}

#[test]
fn a_name_that_a_kernel_queue_is_refused_is_told_from_a_device_that_is_enabled() {
    let line = "libaccfg: accfg_wq_set_str_name: wq0.0: write failed: Operation not supported";
    let (what, advice) = one(line);
    assert!(what.contains("type kernel") && advice.contains("before the type"));
    assert!(!advice.contains("while the device"), "{advice}");
    let (_, advice) = one("enabled 0 wq(s) out of 1");
    assert!(advice.contains("dmaengine"), "{advice}");
}

#[test]
fn a_module_that_no_kernel_has_is_named_as_such() {
    let (what, advice) =
        one("modprobe: FATAL: Module idxd_vdev not found in directory /lib/modules/5.15.0");
    assert!(what.contains("no release") && advice.contains("vfio-pci"));
    let (what, _) = one("modprobe: FATAL: Module idxd not found in directory /lib/modules/5.15.0");
    assert!(!what.contains("no release"), "{what}");
    let (_, advice) = one("modprobe: FATAL: Module idxd not found in directory /lib/modules/6.2.0");
    assert!(advice.contains("linux-modules-extra"), "{advice}");
    let (what, advice) = one("modprobe: FATAL: Module idxd is builtin.");
    assert!(
        what.contains("built into") && advice.contains("unbind"),
        "{advice}"
    );
}

#[test]
fn statuses_are_decoded_where_they_stand_in_decimal_or_in_a_sentence() {
    let (what, _) =
        one("$1 = {status = 131 '\\203', result = 0, bytes_completed = 0, fault_addr = 140216}");
    assert!(what.contains("0x83"), "{what}");
    let (what, _) = one("{\"status\": 3, \"bytes_completed\": 4096}");
    assert!(what.contains("page_fault"), "{what}");
    assert_eq!(read("{\"status\": 3, \"name\": \"x\"}").findings, []);
    assert_eq!(read("status = 1, bytes_completed = 64").findings, []);
    let (sentence, _) = one("An error acquired. The status of this error is 503.");
    let (number, _) = one("qpl status 503");
    assert_eq!(sentence, number);
}

#[test]
fn remapping_units_may_differ_in_what_no_dsa_needs() {
    for feature in ["fl1gp_support", "pgsel_inv", "nwfs", "dit", "sc_support"] {
        let mut texts = Texts::new();
        texts.message(&format!("DMAR: IOMMU feature {feature} inconsistent"));
        let explanation = texts.finish();
        assert_eq!(
            (explanation.usual, explanation.findings),
            (1, vec![]),
            "{feature}"
        );
    }
    for feature in ["pasid", "prs", "smts", "dev_iotlb_support"] {
        let mut texts = Texts::new();
        texts.message(&format!("DMAR: IOMMU feature {feature} inconsistent"));
        assert_eq!(texts.finish().worst(), Some(Severity::Warning), "{feature}");
    }
}

#[test]
fn a_function_that_nobody_set_up_is_no_matter_of_shared_virtual_addressing() {
    let (_, advice) = one(
        "DMAR: [DMA Read NO_PASID] Request device [00:02.0] fault addr 0x1000 [fault reason 0x01] Present bit in root entry is clear",
    );
    assert!(
        advice.contains("No driver") && !advice.contains("pasid_enabled"),
        "{advice}"
    );
}

#[test]
fn nobody_is_told_to_turn_on_what_the_chipset_cannot_do() {
    let (what, advice) = one(
        "[ 0.1] DMAR-IR: This system BIOS has enabled interrupt remapping\n\
         on a chipset that contains an erratum making that\n\
         feature unstable.  To maintain system stability\n\
         interrupt remapping is being disabled.  Please\n\
         contact your BIOS vendor for an update\n",
    );
    assert!(
        what.contains("chipset") && advice.contains("leave it off"),
        "{advice}"
    );
}

#[test]
fn a_pcie_error_that_names_the_function_of_a_dsa_is_not_passed_over() {
    let aer =
        "[ 9.1] pcieport 0000:6a:00.0: AER: Uncorrected (Fatal) error received: 0000:6a:01.0\n";
    assert_eq!(read(aer).unknown.count, 0);
    let text = format!("[ 7.9] idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)\n{aer}");
    let mut texts = Texts::new();
    texts
        .read("log", std::io::Cursor::new(text.into_bytes()))
        .unwrap();
    assert_eq!(texts.finish().unknown.count, 1);
}

#[test]
fn what_follows_from_a_message_stands_behind_it() {
    let whats = |text: &'static str| -> Vec<String> {
        let findings = read(text).findings;
        findings.into_iter().map(|finding| finding.what).collect()
    };
    let halted = whats(
        "[ 18.6] idxd 0000:00:01.0: Device is HALTED!\n\
         [ 18.6] idxd 0000:00:01.0: Intel(R) IDXD DMA Engine init failed\n\
         [ 18.6] idxd: probe of 0000:00:01.0 failed with error -6\n",
    );
    assert_eq!(halted.len(), 3);
    assert!(halted[0].contains("halted"), "{halted:?}");
    let shared = whats(
        "Error[0x800c0000] iax1: wq error - no shared wq support (platform configuration error)\n\
         [ 245.7] idxd 0000:75:01.0: Unable to turn on user SVA feature.\n\
         [ 419.3] idxd 0000:75:02.0: No shared wq support but configured.\n",
    );
    assert!(
        shared[0].starts_with("idxd found no shared virtual addressing"),
        "{shared:?}"
    );
    // Nothing failed: the device was enabled before.
    let skipped = read(
        "dsa0 is in enabled state already, skipping...\n\nfailed in dsa0\n\nenabled 0 device(s) out of 1\n",
    );
    assert_eq!(skipped.findings.len(), 1, "{skipped:?}");
    assert_eq!(skipped.worst(), Some(Severity::Warning));
    // Two lines of one failure.
    let failed = read("failed in dsa0/wq0.1\nenabled 0 wq(s) out of 1\n");
    assert_eq!(failed.findings.len(), 1, "{failed:?}");
    assert_eq!(failed.findings[0].count, 2);
}

#[test]
fn a_text_in_which_something_crashed_is_not_called_well() {
    let healthy = "[ 7.9] idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)\n";
    for crash in [
        "terminate called after throwing an instance of 'std::logic_error'",
        "Aborted (core dumped)",
        "Segmentation fault",
        "[ 9.0] BUG: kernel NULL pointer dereference, address: 0000000000000038",
        "[ 9.0] Oops: 0000 [#1] PREEMPT SMP NOPTI",
    ] {
        let mut texts = Texts::new();
        let text = format!("{healthy}{crash}\n");
        texts
            .read("log", std::io::Cursor::new(text.into_bytes()))
            .unwrap();
        let shown = dray_doctor::messages(&texts.finish(), 200);
        assert!(!shown.contains("Nothing is wrong"), "{shown}");
        assert!(shown.contains(crash), "{shown}");
    }
    assert!(dray_doctor::messages(&read(healthy), 200).contains("Nothing is wrong"));
    let (what, _) =
        one("  what():  An error acquired during job execution.\nAborted (core dumped)\n");
    assert!(what.contains("QPL"), "{what}");
}

#[test]
fn source_text_and_patches_report_nothing() {
    let explanation = read(
        "diff --git a/drivers/dma/idxd/init.c b/drivers/dma/idxd/init.c\n\
         --- a/drivers/dma/idxd/init.c\n+++ b/drivers/dma/idxd/init.c\n\
         @@ -514,13 +514,14 @@ static int idxd_probe(struct idxd_device *idxd)\n\
         +               dev_warn(dev, \"Unable to turn on user SVA feature.\\n\");\n\
         -               dev_warn(dev,\n\
         -                        \"User forced SVA off via module param.\\n\");\n\
         +       put_device(idxd_confdev(idxd));\n",
    );
    assert_eq!(explanation.findings, []);
    assert_eq!(explanation.unknown.count, 0, "{explanation:?}");
}

#[test]
fn words_of_a_command_line_count_where_they_stand_on_one() {
    let (what, _) = one(
        "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-6.8.0-45-generic ro module_blacklist=nouveau,idxd\n",
    );
    assert!(what.contains("keeps the driver from loading"), "{what}");
    let (what, _) = one("$ cat /proc/cmdline\nro intel_iommu=off\n");
    assert!(what.contains("turns VT-d"), "{what}");
    for text in [
        "Add idxd to module_blacklist in the kdump kernel command line:\n\n  module_blacklist=idxd,idxd_bus\n",
        "[ 0.0] Kernel command line: elfcorehdr=0x6b000000 reset_devices module_blacklist=idxd\n",
    ] {
        assert_eq!(read(text).findings, [], "{text}");
    }
}

#[test]
fn what_a_text_says_is_done_is_not_advised() {
    let dmesg = "[ 7.9] idxd 0000:f2:01.0: Unable to turn on user SVA feature.\n";
    let advice = |line: &str| {
        let mut texts = Texts::new();
        let text = format!("$ cat /proc/cmdline\n{line}\n$ dmesg\n{dmesg}");
        texts
            .read("log", std::io::Cursor::new(text.into_bytes()))
            .unwrap();
        texts.finish().findings[0].fix.advice.clone()
    };
    assert!(advice("ro quiet=1").contains("intel_iommu=on,sm_on, and VT-d"));
    let scalable = advice("BOOT_IMAGE=/vmlinuz ro intel_iommu=on,sm_on iommu=pt");
    assert!(scalable.contains("has scalable mode already") && scalable.contains("try no5lvl"));
    assert!(advice("ro intel_iommu=on,sm_on no5lvl").contains("try without no5lvl"));
}

#[test]
fn a_refused_queue_of_iaa_crypto_is_told_from_one_of_programs() {
    let refused = "[ 56.8] user: probe of wq15.0 failed with error -95\n";
    let explanation = read(refused);
    assert_eq!(explanation.worst(), Some(Severity::Warning));
    let (_, advice) = one(refused);
    assert!(advice.starts_with("Harmless if"), "{advice}");
    let (_, advice) = one(
        "[ 5.0] idxd: crypto: iaa_crypto now ENABLED\n[ 56.8] user: probe of wq15.0 failed with error -95\n",
    );
    assert!(advice.starts_with("iaa_crypto is on"), "{advice}");
}

#[test]
fn who_is_told_to_load_the_driver_again_is_told_where_that_crashes() {
    for text in [
        "[ 1.0] idxd 0000:6a:01.0: idxd halted, need FLR.\n",
        "[ 1.0] idxd 0000:6a:01.0: Unable to turn on user SVA feature.\n",
        "libaccfg: accfg_wq_set_size: wq0.0: write failed: Invalid argument\n",
    ] {
        let explanation = read(text);
        let fix = &explanation.findings[0].fix;
        assert!(
            fix.commands
                .iter()
                .any(|line| line == "sudo modprobe -r idxd"),
            "{text}"
        );
        assert!(
            fix.advice.contains("6.12.30") && fix.advice.contains("restart"),
            "{text}"
        );
    }
}

#[test]
fn an_error_of_one_device_does_not_follow_from_what_is_said_of_another() {
    for (text, worst) in [
        (
            "dsa0 is in enabled state already, skipping...\nfailed in dsa1\n",
            Severity::Error,
        ),
        (
            "dsa0 is active, will skip...\ndsa1/wq1.0: wq error - no SVM support and needed\n",
            Severity::Error,
        ),
        (
            "dsa0 is in enabled state already, skipping...\nfailed in dsa0\n",
            Severity::Warning,
        ),
    ] {
        let explanation = read(text);
        assert_eq!(explanation.worst(), Some(worst), "{explanation:?}");
        assert_eq!(explanation.usual, 0, "{text}");
    }
}

#[test]
fn a_command_line_of_another_boot_or_host_does_not_say_what_is_done_already() {
    let sva = "idxd 0000:6a:01.0: Unable to turn on user SVA feature.";
    let advice = |text: String| {
        let mut texts = Texts::new();
        texts
            .read("log", std::io::Cursor::new(text.into_bytes()))
            .unwrap();
        texts.finish().findings[0].fix.advice.clone()
    };
    let scalable = "Command line: ro intel_iommu=on,sm_on";
    let boots = |first: &str| {
        advice(format!(
            "[ 0.0] {first}\n[ 90.0] {sva}\n[ 0.0] {scalable}\n[ 9.0] x\n"
        ))
    };
    assert!(boots("Command line: ro quiet").contains("intel_iommu=on,sm_on, and VT-d"));
    // The command line of that boot is not in the text.
    assert!(boots("x").contains("has scalable mode already"));
    let hosts = |other: &str| {
        advice(format!(
            "Nov 20 10:00:01 a kernel: {sva}\nNov 20 10:00:01 {other} kernel: {scalable}\n"
        ))
    };
    assert!(hosts("b").contains("intel_iommu=on,sm_on, and VT-d"));
    assert!(hosts("a").contains("has scalable mode already"));
}
