//! Zarr, as zip archives: a directory takes as much.

use super::numpy::zip;
use super::*;

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let v2 = br#"{"zarr_format":2,"shape":[1],"chunks":[1],"dtype":"|u1","compressor":null,"fill_value":0,"filters":null,"order":"C"}"#;
    let v3 = br#"{"zarr_format":3,"node_type":"array","shape":[1],"data_type":"int8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},"chunk_key_encoding":{"name":"v2"},"fill_value":0,"codecs":["bytes"]}"#;
    for (what, name, document) in [
        ("arrays of v2", ".zarray", &v2[..]),
        ("arrays of v3", "zarr.json", v3),
        ("groups of v2", ".zgroup", br#"{"zarr_format":2}"#),
        (
            "groups of v3",
            "zarr.json",
            br#"{"zarr_format":3,"node_type":"group"}"#,
        ),
        ("documents of nothing", ".zarray", b"{}"),
        (
            "attributes",
            "zarr.json",
            br#"{"zarr_format":3,"node_type":"group","attributes":{"a":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}"#,
        ),
    ] {
        add_refused(all, format!("zarr, {what}"), "a.zarr.zip", move |len| {
            zip(len, document, |n| format!("{}/{name}", key(n)))
        });
    }
    add_refused(all, "zarr, chunks", "a.zarr.zip", |len| {
        let line = br#"{"zarr_format":2,"shape":[9000000],"chunks":[1],"dtype":"|u1","compressor":null,"fill_value":0,"filters":null,"order":"C"}"#;
        zip(len, line, |n| match n {
            0 => ".zarray".to_owned(),
            n => n.to_string(),
        })
    });
    add_refused(
        all,
        "zarr, directories in directories",
        "a.zarr.zip",
        |len| {
            zip(len, b"{}", |n| {
                format!("{}/.zattrs", ["a"; 60].join("/") + &key(n))
            })
        },
    );
}
