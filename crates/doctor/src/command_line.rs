//! Words of the kernel's command line that concern a DSA.

/// Whether a word keeps a module from loading.
pub(crate) fn forbids(word: &str, module: &str) -> bool {
    let lists = [
        "module_blacklist=",
        "modprobe.blacklist=",
        "rd.driver.blacklist=",
    ];
    let list = lists.iter().find_map(|key| word.strip_prefix(key));
    list.is_some_and(|list| list.split(',').any(|name| name == module))
}

/// Whether a word turns shared virtual addressing off in the driver.
pub(crate) fn turns_sva_off(word: &str) -> bool {
    let value = word.strip_prefix("idxd.sva=");
    value.is_some_and(|value| ["0", "n", "N", "off"].contains(&value))
}
