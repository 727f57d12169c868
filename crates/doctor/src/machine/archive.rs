//! Captures as tar.gz, unpacked in memory and distrusted.

use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::{Compression, GzBuilder, read::GzDecoder};
use tar::{Archive, Builder, EntryType, Header};

use super::captured::{Captured, FORMAT, Index, MAX_MEMBER_BYTES, MAX_MEMBERS};

/// The member that holds what is not content of files.
pub(super) const INDEX: &str = "capture.json";
/// The directory below which the machine's files stand.
pub(super) const ROOT: &str = "machine";

/// Largest accepted archive, packed, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 16 << 20;
/// Largest accepted archive, unpacked; a bomb ends here.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It ends in the middle.
    #[error("the archive is truncated")]
    Truncated,
    /// It is not a tar.gz, or a damaged one.
    #[error("it is not a tar.gz, or it is damaged")]
    Damaged(#[source] io::Error),
    /// It is larger than any capture.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// It has more members than any capture.
    #[error("it has more than {limit} members")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A member that stands outside of where captures have theirs.
    #[error("member {path:?} stands outside of {ROOT}/")]
    Outside {
        /// The name of the member.
        path: String,
    },
    /// A member that is a link, a device or something else.
    #[error("member {path:?} is not a regular file")]
    NotAFile {
        /// The name of the member.
        path: String,
    },
    /// Two members of one name.
    #[error("member {path:?} is there twice")]
    Duplicate {
        /// The name of the member.
        path: String,
    },
    /// The index is missing.
    #[error("there is no {INDEX} in it")]
    NoIndex,
    /// The index is no JSON, or has other keys.
    #[error("{INDEX} does not hold what it should")]
    BadIndex(#[source] serde_json::Error),
    /// A capture of a version to come.
    #[error("its format is {found}, and this program knows {FORMAT}: use a newer dray")]
    Format {
        /// The format that it says it has.
        found: u32,
    },
    /// A part that only directories may have.
    #[error("it has a base, which only a directory can have")]
    Base,
}

pub(super) fn index(bytes: &[u8]) -> Result<Index, ArchiveError> {
    let index: Index = serde_json::from_slice(bytes).map_err(ArchiveError::BadIndex)?;
    match index.format {
        FORMAT => Ok(index),
        found => Err(ArchiveError::Format { found }),
    }
}

pub(super) fn pack(captured: &Captured) -> Result<Vec<u8>, ArchiveError> {
    let gz = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let mut tar = Builder::new(gz);
    let index = serde_json::to_vec_pretty(&captured.index).map_err(ArchiveError::BadIndex)?;
    append(&mut tar, INDEX, &index)?;
    for (path, bytes) in &captured.files {
        let name = format!("{ROOT}/{}", path.trim_start_matches('/'));
        append(&mut tar, &name, bytes)?;
    }
    let gz = tar.into_inner().map_err(ArchiveError::Damaged)?;
    gz.finish().map_err(ArchiveError::Damaged)
}

fn append(tar: &mut Builder<impl io::Write>, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    if bytes.len() as u64 > MAX_MEMBER_BYTES {
        return Err(too_large(name, MAX_MEMBER_BYTES));
    }
    let mut header = Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, name, bytes)
        .map_err(ArchiveError::Damaged)
}

pub(super) fn unpack(file: impl Read) -> Result<Captured, ArchiveError> {
    let mut packed = Vec::new();
    let read = file.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut packed);
    read.map_err(ArchiveError::Damaged)?;
    if packed.len() as u64 > MAX_ARCHIVE_BYTES {
        return Err(too_large("the archive", MAX_ARCHIVE_BYTES));
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(packed.as_slice())
        .take(MAX_UNPACKED_BYTES + 1)
        .read_to_end(&mut bytes);
    read.map_err(damage)?;
    if bytes.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(too_large("the archive, unpacked,", MAX_UNPACKED_BYTES));
    }
    members(&bytes)
}

fn members(bytes: &[u8]) -> Result<Captured, ArchiveError> {
    let mut captured = Captured::default();
    let mut found = None;
    let mut archive = Archive::new(bytes);
    for (count, entry) in archive.entries().map_err(damage)?.enumerate() {
        let mut entry = entry.map_err(damage)?;
        if count >= MAX_MEMBERS {
            return Err(ArchiveError::TooMany { limit: MAX_MEMBERS });
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory => continue,
            _ => return Err(ArchiveError::NotAFile { path: name }),
        }
        if entry.size() > MAX_MEMBER_BYTES {
            return Err(too_large(&format!("member {name:?}"), MAX_MEMBER_BYTES));
        }
        let size = entry.size();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(damage)?;
        if content.len() as u64 != size {
            return Err(ArchiveError::Truncated);
        }
        if name == INDEX {
            if found.replace(index(&content)?).is_some() {
                return Err(ArchiveError::Duplicate { path: name });
            }
            continue;
        }
        let path = on_the_machine(&name)?;
        if captured.files.insert(path, content).is_some() {
            return Err(ArchiveError::Duplicate { path: name });
        }
    }
    captured.index = found.ok_or(ArchiveError::NoIndex)?;
    match captured.index.base {
        Some(_) => Err(ArchiveError::Base),
        None => Ok(captured),
    }
}

/// The path on the machine of a member's name.
fn on_the_machine(name: &str) -> Result<String, ArchiveError> {
    let outside = || ArchiveError::Outside {
        path: name.to_owned(),
    };
    let rest = Path::new(name).strip_prefix(ROOT).map_err(|_| outside())?;
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if rest.as_os_str().is_empty() || !Path::new(name).components().all(plain) {
        return Err(outside());
    }
    match rest.to_str() {
        Some(fact) if fact.starts_with('@') => Ok(fact.to_owned()),
        Some(path) => Ok(format!("/{path}")),
        None => Err(outside()),
    }
}

fn too_large(what: &str, limit: u64) -> ArchiveError {
    ArchiveError::TooLarge {
        what: what.to_owned(),
        limit,
    }
}

fn damage(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ArchiveError::Truncated,
        // tar wraps its own words around the end of its input.
        _ if error.to_string().contains("failed to read entire block") => ArchiveError::Truncated,
        _ => ArchiveError::Damaged(error),
    }
}
