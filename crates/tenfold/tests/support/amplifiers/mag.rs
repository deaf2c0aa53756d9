//! mag, but for its manifests.

use super::*;

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    fn version_1(tensors: usize, values: usize, records: &[u8]) -> Vec<u8> {
        let mut out = b"MAG!\x01\0\0\0\0\0\0\0".to_vec();
        for number in [tensors, values, 0] {
            out.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        out.extend(records);
        out
    }
    let sized = |key: &str| {
        let len = u32::try_from(key.len()).unwrap();
        [&len.to_le_bytes()[..], key.as_bytes()].concat()
    };
    let spec = move |name: &str, end: usize| {
        let mut out = sized(name);
        out.extend([0; 6 * 8]);
        out.push(0);
        out.extend([0; 8]);
        out.extend((end as u64).to_le_bytes());
        out.extend([0; 4]);
        out
    };
    add(all, "mag spec-1, values", "a.mag", move |len| {
        let count = len / 19;
        let records = (0..count).map(|n| [vec![0; 12], sized(&key(n))].concat());
        let records = records.collect::<Vec<_>>().concat();
        let end = 24 + records.len() + spec("a", 0).len();
        version_1(1, count, &[records, spec("a", end)].concat())
    });
    add(all, "mag spec-1, tensors", "a.mag", move |len| {
        let count = len / spec("aaa", 0).len();
        let end = 24 + (0..count).map(|n| spec(&key(n), 0).len()).sum::<usize>();
        let records: Vec<_> = (0..count).map(|n| spec(&key(n), end)).collect();
        version_1(count, 0, &records.concat())
    });
    add(all, "mag archive-1, tensors", "a.mag", move |len| {
        let record = |n: usize, end: u64| {
            let head = [0x0100u32.to_le_bytes()].concat();
            let fields = [1, end + 4 * n as u64, 1].map(u64::to_le_bytes).concat();
            [head, fields, sized(&key(n))].concat()
        };
        let count = len / record(0, 0).len();
        let end = 24 + (0..count).map(|n| record(n, 0).len() as u64).sum::<u64>();
        let records: Vec<_> = (0..count).map(|n| record(n, end)).collect();
        version_1(count, 0, &[records.concat(), vec![0; 4 * count]].concat())
    });
    add(all, "mag snapshot, tensors", "a.mag", |len| {
        let count = u32::try_from(len / (4 + 3 + 32)).unwrap().min(65_534);
        let mut out = b"MAG!".to_vec();
        out.extend(100u32.to_le_bytes());
        out.extend([0; 8 + 4 + 4 + 4]);
        out.extend(count.to_le_bytes());
        out.extend(b"SRP!");
        out.extend(count.to_le_bytes());
        for n in 0..=count {
            out.extend((4 * n).to_le_bytes());
        }
        for n in 0..count {
            out.extend(format!("{n:04x}").as_bytes().iter().rev().take(4));
        }
        out.extend(b"MDT!DSC!");
        for n in 0..count {
            out.extend([1, 0, 0, 0]);
            out.extend(n.to_le_bytes());
            out.extend([0; 8 + 8 + 8]);
        }
        out.extend(b"BUF!");
        out
    });
}
