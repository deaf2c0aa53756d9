//! NetCDF.

use super::*;

/// A name of NetCDF, or text: its length, its bytes, and zeros up to a multiple of four.
fn netcdf_name(name: &str) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(name.as_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A file of CDF-1 with a list of these, and nothing in the others: which of the three it is, its tag and its entries.
fn netcdf_file(which: usize, tag: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"CDF\x01\0\0\0\0".to_vec();
    for list in 0..3 {
        if list == which {
            file.extend_from_slice(&tag.to_be_bytes());
            file.extend_from_slice(&(entries.len() as u32).to_be_bytes());
            file.extend_from_slice(&entries.concat());
        } else {
            file.extend_from_slice(&[0; 8]);
        }
    }
    file
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    add(all, "netcdf, dimensions", "a.nc", |len| {
        let entry = |n| [netcdf_name(&key(n)), vec![0, 0, 0, 1]].concat();
        let entries: Vec<_> = (0..len / 12).map(entry).collect();
        netcdf_file(0, 10, &entries)
    });
    add(all, "netcdf, attributes", "a.nc", |len| {
        let entry = |n| {
            [
                netcdf_name(&key(n)),
                vec![0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0],
            ]
            .concat()
        };
        let entries: Vec<_> = (0..len / 20).map(entry).collect();
        netcdf_file(1, 12, &entries)
    });
    add(all, "netcdf, a long attribute", "a.nc", |len| {
        let mut entry = netcdf_name("a");
        entry.extend_from_slice(&[0, 0, 0, 1]);
        entry.extend_from_slice(&((len / 4 * 4) as u32).to_be_bytes());
        entry.resize(entry.len() + len / 4 * 4, 7);
        netcdf_file(1, 12, &[entry])
    });
    add(all, "netcdf, variables", "a.nc", |len| {
        // Without dimensions; each has a byte of its own behind the header.
        let count = len / 32;
        let mut entries = Vec::new();
        let header: usize = 8
            + 24
            + (0..count)
                .map(|n| netcdf_name(&key(n)).len() + 24)
                .sum::<usize>();
        for n in 0..count {
            let mut entry = netcdf_name(&key(n));
            entry.extend_from_slice(&[0; 12]);
            entry.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 4]);
            entry.extend_from_slice(&((header + 4 * n) as u32).to_be_bytes());
            entries.push(entry);
        }
        let mut file = netcdf_file(2, 11, &entries);
        file.resize(file.len() + 4 * count, 0);
        file
    });
}
