//! The Linux driver's files, its character devices, and vfio-user.

use dray_device::Fidelity;
use dray_idxd::driver::{
    Attribute, DEVICE_ATTRIBUTES, ENGINE_ATTRIBUTES, GROUP_ATTRIBUTES, Needs, Personality,
    WORK_QUEUE_ATTRIBUTES,
};
use dray_vfio::COMMANDS;

use crate::{Entry, Test, exact, test};

/// The kernels whose driver has an attribute; what of the device it needs beside that.
fn kernels(attribute: &Attribute) -> String {
    let newer = |has: fn(Personality) -> bool| {
        let first = Personality::ALL.into_iter().find(|kernel| has(*kernel));
        first.map_or("no kernel".to_owned(), |kernel| {
            format!("{kernel} and later")
        })
    };
    let version_2 = || newer(Personality::has_version_2_attributes);
    match attribute.needs {
        Needs::Nothing => "all".to_owned(),
        Needs::EventLog => version_2() + ", with an event log",
        Needs::OperationConfig => version_2() + ", with OPCFG",
        Needs::PrsDisable => version_2() + ", with PRS disable",
        Needs::AtsDisable => "all; since 6.2 with ATS disable".to_owned(),
        Needs::ProgressLimits => version_2() + ", with limits of work in progress",
        Needs::DriverName => newer(Personality::has_driver_name),
    }
}

/// What is missing of an attribute that is there.
fn missing(name: &str) -> Option<&'static str> {
    Some(match name {
        "desc_progress_limit" | "batch_progress_limit" => {
            "kept and checked; the device holds nothing back by it"
        }
        "read_buffer_limit"
        | "token_limit"
        | "use_read_buffer_limit"
        | "use_token_limit"
        | "read_buffers_allowed"
        | "tokens_allowed"
        | "read_buffers_reserved"
        | "tokens_reserved" => "kept and checked; read buffers limit the modelled device alone",
        "traffic_class_a" | "traffic_class_b" => {
            "kept and checked; memory of the virtual device has one channel"
        }
        "prs_disable" => "kept and checked; a queue of a session asks for no pages by itself",
        "enqcmds_retries" => "kept; kernel queues submit nothing here",
        _ => return None,
    })
}

pub(crate) fn attributes() -> Vec<Entry> {
    const TABLES: Option<Test> = test("idxd", "a_fresh_device");
    const REFUSED: Option<Test> = test("idxd", "refusals_while_a_queue_is_enabled");
    let objects = [
        ("dsaN", DEVICE_ATTRIBUTES),
        ("groupN.M", GROUP_ATTRIBUTES),
        ("engineN.M", ENGINE_ATTRIBUTES),
        ("wqN.M", WORK_QUEUE_ATTRIBUTES),
    ];
    let mut all = Vec::new();
    for (object, attributes) in objects {
        for attribute in attributes {
            let name = format!("{object}/{}", attribute.name);
            let test = match attribute.refusals.is_empty() {
                true => TABLES,
                false => REFUSED,
            };
            let entry = exact("attribute", name, kernels(attribute), test);
            all.push(match missing(attribute.name) {
                Some(missing) => entry.but(Fidelity::Approximate, missing),
                None => entry,
            });
        }
    }
    for name in ["cr_faults", "cr_fault_failures", "pid"] {
        let name = format!("wqN.M/dsaN!wqN.M/fileN/{name}");
        let entry = exact("attribute", name, "6.4 and later".to_owned(), None);
        all.push(entry.but(
            Fidelity::Unsupported,
            "clients of a queue are counted; they have no directories of their own",
        ));
    }
    let accelerator = exact(
        "attribute",
        "iaxN/iaa_cap".to_owned(),
        "6.0 and later".to_owned(),
        None,
    );
    all.push(accelerator.but(Fidelity::Unsupported, "it is of analytics accelerators"));
    all
}

/// What programs do with a character device of the driver.
pub(crate) fn cdev() -> Vec<Entry> {
    let by = |name: &str, of: &str, function| {
        exact(
            "cdev",
            name.to_owned(),
            of.to_owned(),
            test("cli", function),
        )
    };
    vec![
        by(
            "open, dedicated: one client",
            "all",
            "a_closed_client_is_not_counted",
        ),
        by(
            "open, shared: many clients",
            "all",
            "a_shared_queue_takes_enqcmd",
        ),
        by(
            "mmap of the portal",
            "all",
            "a_portal_survives_close_and_follows_mremap",
        ),
        by(
            "MOVDIR64B to the portal",
            "all",
            "a_dedicated_queue_takes_movdir64b",
        ),
        by("ENQCMD to the portal", "all", "a_shared_queue_takes_enqcmd"),
        by(
            "write of descriptors",
            "7.2 and later",
            "written_descriptors_work_on_the_program_s_memory",
        ),
        by(
            "write of descriptors, refused",
            "5.18 to 6.8",
            "older_kernels_refuse_write_unless_it_is_required",
        ),
        by(
            "close, also by the end of the program",
            "all",
            "a_queue_can_be_opened_after_its_client_was_killed",
        ),
        by(
            "page faults: touched by the program",
            "all",
            "missing_pages_are_touched_with_faults_touch",
        ),
        by(
            "mmap without CAP_SYS_RAWIO",
            "7.2 and later",
            "newer_kernels_let_privileged_programs_alone_map",
        ),
        by(
            "a child of fork has no portal",
            "all",
            "a_forked_child_faults_at_the_portal",
        )
        .shown_by("portal"),
        by(
            "poll: ready from the first error of the device on",
            "all",
            "programs",
        ),
        exact(
            "cdev",
            "stat: a character device".to_owned(),
            "all".to_owned(),
            None,
        )
        .but(
            Fidelity::Unsupported,
            "a regular file, with --redirect a socket once it is open: a character device would be the kernel's to open",
        ),
        exact("cdev", "ioctl".to_owned(), "all".to_owned(), None).but(
            Fidelity::Unsupported,
            "ENOTTY, as from the driver, which has none",
        ),
        exact(
            "cdev",
            "memory behind physical addresses, without SVA".to_owned(),
            "5.18".to_owned(),
            None,
        )
        .but(
            Fidelity::Unsupported,
            "a queue of type user needs shared virtual addressing here",
        ),
    ]
}

impl Entry {
    /// The test is in another package.
    fn shown_by(self, package: &'static str) -> Entry {
        Entry {
            test: self.test.map(|test| Test { package, ..test }),
            ..self
        }
    }
}

pub(crate) fn vfio_user() -> Vec<Entry> {
    let entry = |(number, name, served): &(u16, &str, bool)| {
        let function = match (*name, *served) {
            (
                "VERSION" | "DEVICE_GET_INFO" | "DEVICE_GET_REGION_INFO" | "DEVICE_GET_IRQ_INFO",
                _,
            ) => "the_vfio_user_crates_client_finds_the_device",
            ("DMA_MAP" | "DMA_UNMAP", _) => "overlapping_maps_and_partial_unmaps_are_refused",
            ("DEVICE_SET_IRQS", _) => "a_copy_signals_its_interrupt_vector",
            ("REGION_READ" | "REGION_WRITE", _) => "configuration_space_is_that_of_a_dsa",
            ("DEVICE_RESET", _) => "a_function_level_reset_under_load_resets_the_device",
            _ => "invalid_counts_and_commands_are_refused_with_their_errno",
        };
        let entry = exact(
            "vfio-user",
            format!("{number} {name}"),
            "vfio-user 0.1".to_owned(),
            test("vfio", function),
        );
        match served {
            true => entry,
            false => entry.but(Fidelity::Unsupported, "refused with ENOTSUP and counted"),
        }
    };
    COMMANDS.iter().map(entry).collect()
}
