//! The page of `tenfold view`, as `cargo xtask web` builds it from the sources beside.

/// The files of the page: their names, what they are, and their bytes.
pub const FILES: &[(&str, &str, &[u8])] = &[
    ("icon.svg", "image/svg+xml", include_bytes!("dist/icon.svg")),
    (
        "index.html",
        "text/html; charset=utf-8",
        include_bytes!("dist/index.html"),
    ),
    (
        "page.css",
        "text/css; charset=utf-8",
        include_bytes!("dist/page.css"),
    ),
    (
        "page.js",
        "text/javascript; charset=utf-8",
        include_bytes!("dist/page.js"),
    ),
];
