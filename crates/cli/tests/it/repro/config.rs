//! Files of accel-config's: what kernel and accel-config load, `dray config` and `dray run` take.

use super::Row;
use super::run::row;

const VALIDATE: &str = "tree; dray config validate \"$INPUT\"";
const LOAD: &str = "tree; dray config load-config -e -c \"$INPUT\" && attribute wq0.0/state";
const RUN: &str = "dray run --profile \"$INPUT\" -- sh -c '
    cd /sys/bus/dsa/devices && head wq0.0/state wq0.0/threshold wq0.0/size'";
/// accel-config as the witness: it asks the model of the driver, too, but writes what it wants.
const ACCEL_CONFIG: &str = "dray run -- sh -c '
    accel-config load-config -e -c \"$INPUT\" && cat /sys/bus/dsa/devices/wq0.0/state'";

const fn witness(input: &'static str) -> Row {
    Row {
        needs: "accel-config",
        ..row(input, "accel-config", ACCEL_CONFIG)
    }
}

const THRESHOLD: &[&str] = &["wq0.0: threshold 15 is left out, a dedicated work queue has none"];

pub(super) const ROWS: &[Row] = &[
    Row {
        says: THRESHOLD,
        ..row("config/dedicated-threshold.conf", "validate", VALIDATE)
    },
    Row {
        says: &[THRESHOLD[0], "enabled"],
        ..row("config/dedicated-threshold.conf", "load-config -e", LOAD)
    },
    Row {
        says: &[THRESHOLD[0], "/sys/bus/dsa/devices/wq0.0/mode"],
        never: &["wq0.0/threshold", "> /sys/"],
        ..row(
            "config/dedicated-threshold.conf",
            "load-config --dry-run",
            "tree; dray config load-config --dry-run -e -c \"$INPUT\"",
        )
    },
    Row {
        says: &[THRESHOLD[0], "enabled"],
        ..row("config/dedicated-threshold.conf", "run --profile", RUN)
    },
    Row {
        says: &["enabled"],
        ..witness("config/dedicated-threshold.conf")
    },
    Row {
        says: &["iax1 is an IAA", "left alone", "nothing would be refused"],
        ..row("config/dsa-and-iax.conf", "validate", VALIDATE)
    },
    Row {
        says: &["iax1 is an IAA", "left alone", "enabled"],
        ..row("config/dsa-and-iax.conf", "load-config -e", LOAD)
    },
    Row {
        says: &["iax1 is an IAA", "enabled\n", "iax: disabled"],
        ..row(
            "config/dsa-and-iax.conf",
            "run --profile",
            "dray run --profile \"$INPUT\" -- sh -c 'cd /sys/bus/dsa/devices &&
                cat wq0.0/state && echo iax: $(cat iax1/state)'",
        )
    },
    Row {
        says: &["one of them: iax1"],
        ..row(
            "config/dsa-and-iax.conf",
            "run --profile --iax",
            "dray run --iax --profile \"$INPUT\" -- sh -c 'cd /sys/bus/dsa/devices &&
                echo one of them: iax*'",
        )
    },
    Row {
        code: 2,
        says: &["describes no DSA", "iax1"],
        ..row("config/iax-alone.conf", "validate", VALIDATE)
    },
    Row {
        says: &["nothing would be refused"],
        ..row(
            "config/no-sva-dedicated.conf",
            "validate on 5.18",
            "tree_without_sva --kernel 5.18; dray config validate \"$INPUT\"",
        )
    },
    Row {
        says: &["enabled"],
        ..row(
            "config/no-sva-dedicated.conf",
            "load-config -e on 5.18",
            "tree_without_sva --kernel 5.18
            dray config load-config -e -c \"$INPUT\" && attribute wq0.0/state",
        )
    },
    Row {
        code: 1,
        says: &["from Linux 6.1 on", "boot with intel_iommu=on,sm_on"],
        ..row(
            "config/no-sva-dedicated.conf",
            "validate on 6.4",
            "tree_without_sva --kernel 6.4; dray config validate \"$INPUT\"",
        )
    },
    Row {
        code: 1,
        says: &["boot with intel_iommu=on,sm_on, or \"mode\":\"dedicated\"\n"],
        ..row(
            "config/no-sva-shared.conf",
            "validate on 5.18",
            "tree_without_sva --kernel 5.18; dray config validate \"$INPUT\"",
        )
    },
    Row {
        code: 1,
        says: &["\"mode\":\"dedicated\" with \"type\":\"kernel\""],
        ..row(
            "config/no-sva-shared.conf",
            "validate on 6.4",
            "tree_without_sva --kernel 6.4; dray config validate \"$INPUT\"",
        )
    },
    Row {
        says: &["nothing would be refused"],
        ..row(
            "config/no-sva-shared.conf",
            "validate with the fix on 5.18",
            "tree_without_sva --kernel 5.18; sed s/shared/dedicated/ \"$INPUT\" >fixed
            dray config validate fixed",
        )
    },
    Row {
        says: &["nothing would be refused"],
        ..row(
            "config/no-sva-shared.conf",
            "validate with the fix on 6.4",
            "tree_without_sva --kernel 6.4
            sed -e s/shared/dedicated/ -e 's/\"driver_name\":\"user\",//' -e s/user/kernel/ \"$INPUT\" >fixed
            dray config validate fixed",
        )
    },
    row("config/trailing-commas.conf", "validate", VALIDATE),
    row("config/trailing-commas.conf", "load-config -e", LOAD),
    row("config/trailing-commas.conf", "run --profile", RUN),
    witness("config/trailing-commas.conf"),
    Row {
        says: &["the driver gives it 16 entries", "nothing would be refused"],
        ..row("config/no-size.conf", "validate", VALIDATE)
    },
    Row {
        says: &["==> wq0.0/size <==\n16"],
        ..row("config/no-size.conf", "run --profile", RUN)
    },
    witness("config/no-size.conf"),
    Row {
        code: 1,
        says: &["size is missing"],
        ..row(
            "config/no-size.conf",
            "validate on 5.18",
            "tree --kernel 5.18; dray config validate \"$INPUT\"",
        )
    },
    row("config/long-name.conf", "load-config -e", LOAD),
    witness("config/long-name.conf"),
    Row {
        says: &["the driver dmaengine takes it", "nothing would be refused"],
        ..row("config/type-and-driver.conf", "validate", VALIDATE)
    },
    witness("config/type-and-driver.conf"),
    Row {
        says: &[
            "event_log_size 64 is left out",
            "desc_progress_limit 2 is left out",
            "traffic_class_a stays 1",
            "prs_disable 1 is left out",
            "op_config is left out",
        ],
        ..row("config/version-2-settings.conf", "validate", VALIDATE)
    },
    row("config/version-2-settings.conf", "load-config -e", LOAD),
    row("config/version-2-settings.conf", "run --profile", RUN),
    witness("config/version-2-settings.conf"),
];
