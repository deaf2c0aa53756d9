//! Codes and zero points of compressed-tensors in words, with and without gaps.

use serde_json::{Value as Json, json};

use crate::model::{Model, Stored};

const COLS: usize = 96;
const GROUP: usize = 32;

/// Codes in words of 32 bits: a stream of bits, or as many in each as are whole.
fn words(codes: &[u32], bits: usize, padded: bool) -> Vec<u32> {
    if padded {
        let words = codes.chunks(32 / bits);
        let word = |codes: &[u32]| {
            let codes = codes.iter().enumerate();
            codes.fold(0, |word, (n, code)| word | code << (n * bits))
        };
        return words.map(word).collect();
    }
    let mut words = vec![0u64; (codes.len() * bits).div_ceil(32) + 1];
    for (n, &code) in codes.iter().enumerate() {
        let (at, shift) = (n * bits / 32, n * bits % 32);
        let placed = u64::from(code) << shift;
        words[at] |= placed & u64::from(u32::MAX);
        words[at + 1] |= placed >> 32;
    }
    words.pop();
    words
        .iter()
        .map(|word| u32::try_from(*word).unwrap())
        .collect()
}

/// A code without a pattern that a wrong place could repeat.
fn code(row: usize, col: usize, bits: usize) -> u32 {
    let mixed = (row * 131 + col * 17 + 5).wrapping_mul(2_654_435_761);
    (mixed >> 7) as u32 % (1 << bits)
}

fn config(bits: usize) -> Json {
    let weights = json!({
        "num_bits": bits, "type": "int", "symmetric": false, "strategy": "group", "group_size": GROUP,
    });
    json!({"quantization_config": {
        "quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }})
}

/// A model with zero points, and its numbers where all scales are 1.
fn model(rows: usize, cols: usize, bits: usize, padded: bool) -> (Model, Vec<f32>) {
    let groups = cols.div_ceil(GROUP);
    let zero = |row: usize, group: usize| code(row + 1000, group, bits);
    let codes: Vec<u32> = (0..rows)
        .flat_map(|row| {
            let codes: Vec<u32> = (0..cols).map(|col| code(row, col, bits)).collect();
            words(&codes, bits, padded)
        })
        .collect();
    let down: Vec<Vec<u32>> = (0..groups)
        .map(|group| {
            let zeros: Vec<u32> = (0..rows).map(|row| zero(row, group)).collect();
            words(&zeros, bits, padded)
        })
        .collect();
    let high = down[0].len();
    let zeros: Vec<u32> = (0..high)
        .flat_map(|row| down.iter().map(move |column| column[row]))
        .collect();
    let numbers = (0..rows).flat_map(|row| {
        (0..cols).map(move |col| code(row, col, bits) as f32 - zero(row, col / GROUP) as f32)
    });
    let (rows_of, cols_of) = (rows as u64, cols as u64);
    let along = (codes.len() / rows) as u64;
    let shape = [rows_of, cols_of].map(u64::to_le_bytes).concat();
    let scales = vec![1.0; rows * groups];
    let tensors = [
        ("x.weight_packed", Stored::words(&[rows_of, along], &codes)),
        (
            "x.weight_scale",
            Stored::floats(&[rows_of, groups as u64], &scales),
        ),
        ("x.weight_shape", Stored::new("I64", &[2], shape)),
        (
            "x.weight_zero_point",
            Stored::words(&[high as u64, groups as u64], &zeros),
        ),
    ];
    (Model::new(tensors, config(bits)), numbers.collect())
}

#[test]
fn zero_points_lie_as_codes_do() {
    for bits in [2, 3, 4, 5, 6, 7, 8] {
        for rows in [5, 8, 16, 20, 48, 53] {
            for padded in [false, true] {
                let (model, expected) = model(rows, COLS, bits, padded);
                let found = model.numbers("x.weight").unwrap();
                assert!(
                    found == expected,
                    "{bits} bits, {rows} rows, padded: {padded}"
                );
            }
        }
    }
}

#[test]
fn as_many_words_with_gaps_as_without_are_ambiguous_unless_zero_points_tell() {
    // 20 codes of 3 bits take two words either way, and so do 16 zero points; 96 of them do not.
    for padded in [false, true] {
        let error = model(16, 20, 3, padded).0.numbers("x.weight").unwrap_err();
        assert_eq!(error.rule(), "quantized.ambiguous", "{error}");
        let (model, expected) = model(96, 20, 3, padded);
        assert_eq!(model.numbers("x.weight").unwrap(), expected, "{padded}");
    }
    // One word has no room for a difference.
    let (model, expected) = model(9, 10, 3, true);
    assert_eq!(model.numbers("x.weight").unwrap(), expected);
}

#[test]
fn zero_points_in_another_way_than_the_codes_are_refused() {
    let (mut model, _) = model(96, COLS, 3, true);
    let (mut dense, _) = self::model(96, COLS, 3, false);
    *model.tensor("zero_point") = dense.tensor("zero_point").clone();
    let error = model.numbers("x.weight").unwrap_err();
    assert_eq!(error.rule(), "quantized.shape", "{error}");
    assert_eq!(error.tensor(), Some("x.weight_zero_point"));
}

#[test]
fn blocks_of_one_row_are_what_the_configuration_says() {
    let scales = [2.0, 0.5];
    let tensors = [
        (
            "x.weight",
            Stored::new("F8_E4M3", &[1, 200], vec![0x38; 200]),
        ),
        ("x.weight_scale", Stored::floats(&[1, 2], &scales)),
    ];
    let mut said = config(8);
    let weights = json!({
        "num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128],
    });
    said["quantization_config"]["config_groups"]["group_0"]["weights"] = weights;
    let found = Model::new(tensors, said).numbers("x.weight").unwrap();
    assert_eq!(found, [[2.0; 128].as_slice(), &[0.5; 72]].concat());
}
