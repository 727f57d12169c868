//! The CMake package: `find_package(dray)`, and the targets `dray::dray` (shared) and `dray::static`.

use crate::install::Library;
use crate::link::SYSTEM_LIBRARIES;

/// Names and templates.
pub(crate) const FILES: [(&str, &str); 2] = [
    ("dray-config.cmake", CONFIG),
    ("dray-config-version.cmake", VERSION),
];

const CONFIG: &str = r#"# Where it is found, not where it was installed, is the prefix.
get_filename_component(_dray_prefix "${CMAKE_CURRENT_LIST_DIR}/@UP@" ABSOLUTE)
foreach(_dray_kind shared static)
    if(_dray_kind STREQUAL "shared")
        set(_dray_target dray::dray)
        set(_dray_file "${_dray_prefix}/@LIBDIR@/libdray.so")
        set(_dray_type SHARED)
    else()
        set(_dray_target dray::static)
        set(_dray_file "${_dray_prefix}/@LIBDIR@/libdray.a")
        set(_dray_type STATIC)
    endif()
    if(NOT TARGET ${_dray_target} AND EXISTS "${_dray_file}")
        add_library(${_dray_target} ${_dray_type} IMPORTED)
        set_target_properties(${_dray_target} PROPERTIES
            IMPORTED_LOCATION "${_dray_file}"
            INTERFACE_INCLUDE_DIRECTORIES "${_dray_prefix}/include")
    endif()
endforeach()
if(TARGET dray::static)
    set_property(TARGET dray::static PROPERTY INTERFACE_LINK_LIBRARIES "@SYSTEM@")
endif()
if(NOT TARGET dray::dray AND NOT TARGET dray::static)
    set(dray_FOUND FALSE)
    set(dray_NOT_FOUND_MESSAGE "no libdray in ${_dray_prefix}/@LIBDIR@")
endif()
"#;

const VERSION: &str = r#"set(PACKAGE_VERSION "@VERSION@")
# Before 1.0 a minor version may break; after it a major one.
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif("@MAJOR@" STREQUAL "0")
    if("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "@MAJOR@.@MINOR@"
       OR NOT PACKAGE_FIND_VERSION)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    endif()
elseif("${PACKAGE_FIND_VERSION_MAJOR}" STREQUAL "@MAJOR@")
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
endif()
"#;

/// A template with what it is about filled in.
pub(crate) fn text(template: &str, library: &Library) -> String {
    let libdir = &library.paths.libdir;
    // From lib/cmake/dray up to the prefix.
    let up = vec![
        "..";
        libdir
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .count()
            + 2
    ];
    let mut numbers = library.version.split('.');
    let mut number = || numbers.next().unwrap_or("0").to_owned();
    let (major, minor) = (number(), number());
    let values = [
        ("@UP@", up.join("/")),
        ("@LIBDIR@", libdir.clone()),
        ("@SYSTEM@", SYSTEM_LIBRARIES.join(";")),
        ("@VERSION@", library.version.clone()),
        ("@MAJOR@", major),
        ("@MINOR@", minor),
    ];
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
}
