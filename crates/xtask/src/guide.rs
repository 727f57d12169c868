//! `cargo xtask guide`: the guide as pages, and where their links lead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the guide below `out` with mdBook, and follows every link of its pages.
///
/// # Errors
/// mdBook is not installed, or fails; a link leads nowhere.
pub fn build(root: &Path, out: &Path) -> anyhow::Result<()> {
    let mut mdbook = Command::new("mdbook");
    let status = mdbook
        .arg("build")
        .arg(root.join("docs"))
        .arg("--dest-dir")
        .arg(out)
        .status();
    let status = status.context("mdbook cannot be run: cargo install mdbook --locked")?;
    if !status.success() {
        bail!("mdbook has failed");
    }
    let mut lost = Vec::new();
    let pages = pages(out)?;
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
        for link in links(&text).filter(|link| !leads_to(page, link)) {
            lost.push(format!("{}: {link}", page.display()));
        }
    }
    match lost.is_empty() {
        true => Ok(()),
        false => bail!("links that lead nowhere:\n{}", lost.join("\n")),
    }
}

/// Every page but that for missing pages, which is at no place of its own.
fn pages(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
            && !path.ends_with("404.html")
        {
            found.push(path);
        }
    }
    Ok(found)
}

/// Links within the guide.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let after = page
        .split(" href=\"")
        .skip(1)
        .chain(page.split(" src=\"").skip(1));
    let links = after.filter_map(|rest| rest.split_once('"').map(|(link, _)| link));
    links.filter(|link| !link.contains(':') && !link.is_empty())
}

fn leads_to(page: &Path, link: &str) -> bool {
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let target = match file.is_empty() {
        true => page.to_path_buf(),
        false => page.with_file_name(file),
    };
    let has = |text: String| text.contains(&format!("id=\"{place}\""));
    target.exists() && (place.is_empty() || fs::read_to_string(&target).is_ok_and(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_and_to_places_in_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let page = directory.path().join("page.html");
        let text = "<h1 id=\"top\"><a href=\"#top\"><a href=\"page.html\"><img src=\"no.svg\"><a href=\"page.html#no\">\
            <a href=\"http:x\">";
        fs::write(&page, text).expect("a file");
        let lost: Vec<&str> = links(text).filter(|link| !leads_to(&page, link)).collect();
        assert_eq!(lost, ["page.html#no", "no.svg"]);
        assert_eq!(pages(directory.path()).expect("pages"), [page]);
    }
}
