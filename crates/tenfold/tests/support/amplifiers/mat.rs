//! MATLAB.

use super::*;

fn mat_element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn mat_matrix(class: u32, dims: [u32; 2], name: &str, rest: &[u8]) -> Vec<u8> {
    let words = [class.to_le_bytes(), [0; 4]].concat();
    let dims = [dims[0].to_le_bytes(), dims[1].to_le_bytes()].concat();
    let parts = [
        mat_element(6, &words),
        mat_element(5, &dims),
        mat_element(1, name.as_bytes()),
        rest.to_vec(),
    ];
    mat_element(14, &parts.concat())
}

fn mat_file(variables: &[u8]) -> Vec<u8> {
    let mut file = b"MATLAB 5.0 MAT-file".to_vec();
    file.resize(124, b' ');
    file.extend_from_slice(b"\0\x01IM");
    file.extend_from_slice(variables);
    file
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    let before = all.len();
    add_refused(all, "mat, empty cells", "a.mat", |len| {
        let count = (len / 8) as u32;
        let entries = [14u32.to_le_bytes(), [0; 4]].concat().repeat(len / 8);
        mat_file(&mat_matrix(1, [1, count], "c", &entries))
    });
    add_refused(all, "mat, variables", "a.mat", |len| {
        let mut variables = Vec::new();
        let mut n = 0;
        while variables.len() < len {
            let name = key(n);
            variables.extend(mat_matrix(6, [0, 0], &name, &mat_element(9, &[])));
            n += 1;
        }
        mat_file(&variables)
    });
    add_refused(all, "mat, rows of text", "a.mat", |len| {
        let text = mat_element(2, &vec![b'a'; len]);
        mat_file(&mat_matrix(4, [len as u32, 1], "t", &text))
    });
    add_refused(all, "mat, fields", "a.mat", |len| {
        let mut rest = mat_element(5, &1u32.to_le_bytes());
        rest.extend(mat_element(1, &vec![b'a'; len]));
        mat_file(&mat_matrix(2, [0, 0], "s", &rest))
    });
    // Millions of these are refused, and some thousand are not.
    for amplifier in all.iter_mut().skip(before) {
        amplifier.room = 16 << 20;
    }
}
