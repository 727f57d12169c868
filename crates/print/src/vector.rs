//! An SVG document as PDF and PNG.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use svg2pdf::{ConversionOptions, PageOptions};

/// The family of the fonts that are built in.
const FAMILY: &str = "DejaVu Sans Condensed";

/// Pixels to an inch of an SVG's lengths (CSS).
const SVG_DPI: f32 = 96.0;

/// The fonts that are built in.
#[derive(Debug)]
pub(crate) struct Fonts {
    known: Arc<fontdb::Database>,
}

impl Fonts {
    pub(crate) fn built_in() -> Self {
        let mut known = fontdb::Database::new();
        for face in [
            dejavu::sans_condensed::regular(),
            dejavu::sans_condensed::bold(),
        ] {
            known.load_font_data(face.to_vec());
        }
        known.set_sans_serif_family(FAMILY);
        Self {
            known: Arc::new(known),
        }
    }

    /// Reads a document, its text set in these fonts.
    pub(crate) fn read(&self, svg: &str) -> Result<Drawing, String> {
        let options = Options {
            fontdb: Arc::clone(&self.known),
            font_family: FAMILY.to_owned(),
            dpi: SVG_DPI,
            ..Options::default()
        };
        let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
        Ok(Drawing { tree })
    }
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Drawing {
    tree: Tree,
}

impl Drawing {
    /// As a page of its own size, its text as outlines.
    pub(crate) fn to_pdf(&self) -> Result<Vec<u8>, String> {
        let page = PageOptions { dpi: SVG_DPI };
        svg2pdf::to_pdf(&self.tree, ConversionOptions::default(), page)
            .map_err(|error| error.to_string())
    }

    /// As a picture with so many dots to an inch.
    pub(crate) fn to_png(&self, dpi: f32) -> Result<Vec<u8>, String> {
        let scale = dpi / SVG_DPI;
        let size = self.tree.size();
        let dots = |length: f32| (length * scale).round() as u32;
        let mut dots = Pixmap::new(dots(size.width()), dots(size.height()))
            .ok_or("it has no area, or too large a one")?;
        let scale = Transform::from_scale(scale, scale);
        resvg::render(&self.tree, scale, &mut dots.as_mut());
        dots.encode_png().map_err(|error| error.to_string())
    }
}
