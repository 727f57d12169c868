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
