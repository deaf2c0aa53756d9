//! MessagePack: primitiv.

use super::*;

fn primitiv_file(kind: u8, rest: &[u8]) -> Vec<u8> {
    let head = [0xce, 0, 0, 0, 0, 0xce, 0, 0, 0, 1, 0xce, 0, 0, kind, 0];
    [&head[..], rest].concat()
}

fn packed_text(text: &str) -> Vec<u8> {
    [&[0xa0 | text.len() as u8][..], text.as_bytes()].concat()
}

fn packed_number(n: usize) -> Vec<u8> {
    [&[0xce][..], &u32::try_from(n).unwrap().to_be_bytes()].concat()
}

/// A model of so many parameters, which are scalars or have so many elements, up to 63.
pub fn primitiv_parameters(count: usize, elements: usize) -> Vec<u8> {
    let dims = match elements {
        0 => vec![0x90],
        _ => [vec![0x91], packed_number(elements)].concat(),
    };
    let bytes = 4 * elements.max(1);
    let data = [vec![0xc4, bytes as u8], vec![0; bytes]].concat();
    let tensor = [dims, packed_number(1), data].concat();
    let entry = |n: usize| {
        let name = packed_text(&key(n));
        [&[0x91][..], &name, &tensor, &packed_number(0)].concat()
    };
    let entries: Vec<_> = (0..count).map(entry).collect();
    primitiv_file(3, &[packed_number(count), entries.concat()].concat())
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let map = |count: usize, value: &[u8]| {
        let entries = (0..count).map(|n| [&packed_text(&key(n))[..], value].concat());
        let head = [&[0xdf][..], &u32::try_from(count).unwrap().to_be_bytes()].concat();
        [head, entries.collect::<Vec<_>>().concat()].concat()
    };
    add(all, "primitiv, whole numbers", "a.bin", move |len| {
        let numbers = map(len / 9, &[0xce, 0, 0, 0, 0]);
        primitiv_file(4, &[numbers, vec![0x80]].concat())
    });
    add(all, "primitiv, floats", "a.bin", move |len| {
        let numbers = map(len / 9, &[0xca, 0, 0, 0, 0]);
        primitiv_file(4, &[vec![0x80], numbers].concat())
    });
    const SCALAR: [u8; 12] = [0x90, 0xce, 0, 0, 0, 1, 0xc4, 4, 0, 0, 0, 0];
    let number = packed_number;
    let before = all.len();
    add_refused(all, "primitiv, parameters", "a.bin", move |len| {
        primitiv_parameters(len / (SCALAR.len() + 10), 0)
    });
    add_refused(all, "primitiv, statistics", "a.bin", move |len| {
        let count = len / (SCALAR.len() + 4);
        let entry = |n: usize| [&packed_text(&key(n))[..], &SCALAR].concat();
        let entries: Vec<_> = (0..count).map(entry).collect();
        primitiv_file(
            2,
            &[&SCALAR[..], &number(count), &entries.concat()].concat(),
        )
    });
    // More of them are refused than fit this.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
    add(all, "primitiv, keys of many parts", "a.bin", move |len| {
        let parts = 500;
        let count = len / (SCALAR.len() + 12 + parts);
        let entry = |n: usize| {
            let head = u16::try_from(parts + 1).unwrap().to_be_bytes();
            let empty = vec![0xa0; parts];
            [
                &[0xdc][..],
                &head,
                &empty,
                &packed_text(&key(n)),
                &SCALAR,
                &number(0),
            ]
            .concat()
        };
        let entries: Vec<_> = (0..count).map(entry).collect();
        primitiv_file(3, &[number(count), entries.concat()].concat())
    });
}
