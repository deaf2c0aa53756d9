use tenfold::digits::Float;
use tenfold::{Archive, Bytes};

use super::*;

/// What is shown of an array of these numbers, given by their bits.
fn shown(dtype: DType, shape: &[u64], bytes: &[u8]) -> String {
    let DType::Number(_, lanes) = dtype else {
        panic!("{dtype} has no numbers");
    };
    let mut builder = Archive::builder();
    let bytes = Bytes::copy_from_slice(bytes);
    builder.push("x", dtype, shape, bytes).unwrap();
    let archive = builder.finish();
    let mut all = Vec::new();
    let whole = archive.tensor("x").unwrap().slice(&[]).unwrap();
    whole
        .exact(&mut |element| {
            all.extend_from_slice(element);
            Ok(())
        })
        .unwrap();
    let lanes = lanes.count() as usize;
    let mut formatter = Formatter::new(dtype).unwrap();
    all.chunks(lanes)
        .for_each(|element| formatter.learn(element));
    if shape.is_empty() {
        return formatter.alone(&all);
    }
    let mut out = Vec::new();
    let gaps = vec![None; shape.len()];
    let mut grid = Grid::new(&mut out, shape.to_vec(), gaps);
    for element in all.chunks(lanes) {
        grid.push(&formatter.format(element)).unwrap();
    }
    grid.finish().unwrap();
    String::from_utf8(out).unwrap().trim_end().to_owned()
}

fn f64s(values: &[f64]) -> String {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    shown(DType::F64, &[values.len() as u64], &bytes)
}

fn f32s(values: &[f32]) -> String {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    shown(DType::F32, &[values.len() as u64], &bytes)
}

/// What NumPy 2.4 prints of the same arrays.
#[test]
fn arrays_are_shown_as_numpy_shows_them() {
    assert_eq!(f64s(&[1.0, 0.333_333_333_333_3]), "[1.         0.33333333]");
    assert_eq!(
        f64s(&[1.5, f64::NAN, f64::NEG_INFINITY]),
        "[ 1.5  nan -inf]"
    );
    assert_eq!(f64s(&[f64::NAN, f64::NAN]), "[nan nan]");
    assert_eq!(f64s(&[1e100, 1e-100, 5.0]), "[1.e+100 1.e-100 5.e+000]");
    assert_eq!(
        f64s(&[0.000_123_456_789_012_34, 0.01]),
        "[0.00012346 0.01      ]"
    );
    assert_eq!(f64s(&[-0.0, 0.0]), "[-0.  0.]");
    assert_eq!(
        f32s(&[0.3, 0.000_012_345_678]),
        "[3.0000001e-01 1.2345678e-05]"
    );
    assert_eq!(f32s(&[999_999.0, 3.0]), "[9.99999e+05 3.00000e+00]");
    assert_eq!(f32s(&[1e6, 3.0]), "[1.e+06 3.e+00]");
    // Two decimal numbers are equally near: the even one.
    assert_eq!(
        f32s(&[2_206_560.0 + 0.25, 2e6]),
        "[2.2065602e+06 2.0000000e+06]"
    );
    let complex: Vec<u8> = [1.5f32, 2.0, -0.001, -0.25]
        .iter()
        .flat_map(|part| part.to_le_bytes())
        .collect();
    assert_eq!(
        shown(DType::C64, &[2], &complex),
        "[ 1.5e+00+2.j   -1.0e-03-0.25j]"
    );
    let bytes: Vec<u8> = [1i64, -20, 300]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert_eq!(shown(DType::I64, &[3], &bytes), "[  1 -20 300]");
    assert_eq!(shown(DType::BOOL, &[2], &[1, 0]), "[ True False]");
    let half: Vec<u8> = [0x2e66u16, 0x63d1]
        .iter()
        .flat_map(|bits| bits.to_le_bytes())
        .collect();
    assert_eq!(shown(DType::F16, &[2], &half), "[9.9976e-02 1.0005e+03]");
}

#[test]
fn single_numbers_are_shown_as_numpy_shows_them() {
    let of_64 = |value: f64| shown(DType::F64, &[], &value.to_le_bytes());
    assert_eq!(of_64(1e16), "1e+16");
    assert_eq!(of_64(9_999_999_999_999_998.0), "9999999999999998.0");
    assert_eq!(of_64(1e-5), "1e-05");
    assert_eq!(of_64(5.0), "5.0");
    let of_32 = |value: f32| shown(DType::F32, &[], &value.to_le_bytes());
    assert_eq!(of_32(16_777_216.0), "1.6777216e+07");
    assert_eq!(of_32(100_000.0), "100000.0");
    assert_eq!(of_32(0.1), "0.1");
    let complex = |real: f64, imaginary: f64| {
        let bytes = [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
        shown(DType::C128, &[], &bytes)
    };
    assert_eq!(complex(1.0, 2.0), "(1+2j)");
    assert_eq!(complex(0.0, 1e-5), "1e-05j");
    assert_eq!(complex(-0.0, 1.0), "(-0+1j)");
    assert_eq!(complex(f64::NAN, f64::NEG_INFINITY), "(nan-infj)");
}

#[test]
fn every_number_of_16_bits_is_told_from_its_neighbours() {
    for bits in 0..=u16::MAX {
        for scalar in [Scalar::F16, Scalar::BF16] {
            let value = Float::new(scalar, bits.into()).unwrap();
            if value.is_nan() {
                continue;
            }
            let text = float::alone(value);
            let read: f64 = text.parse().unwrap();
            let number = |bits: u16| match scalar {
                Scalar::F16 => half::f16::from_bits(bits).to_f64(),
                _ => half::bf16::from_bits(bits).to_f64(),
            };
            // Nearer than to both neighbours, as far as these are numbers.
            let distance = |other: u16| (read - number(other)).abs();
            let neighbours = [bits.wrapping_sub(1), bits.wrapping_add(1)];
            let mut neighbours = neighbours
                .into_iter()
                .filter(|bits| number(*bits).is_finite());
            let near =
                read == number(bits) || neighbours.all(|other| distance(bits) < distance(other));
            assert!(near, "{scalar:?} {bits:#x} {text}");
        }
    }
}

#[test]
fn packed_numbers_are_taken_apart() {
    let u4 = DType::Number(Scalar::U4, Lanes::Real);
    assert_eq!(shown(u4, &[3], &[0x21, 0x0f]), "[ 1  2 15]");
    let i4 = DType::Number(Scalar::I4, Lanes::Real);
    assert_eq!(shown(i4, &[3], &[0x71, 0x0f]), "[ 1  7 -1]");
    let i2 = DType::Number(Scalar::I2, Lanes::Real);
    assert_eq!(shown(i2, &[4], &[0b11_10_01_00]), "[ 0  1 -2 -1]");
    // 0.125, 7.5, -7.5 in 6 bits each.
    let f6 = DType::Number(Scalar::F6E2M3, Lanes::Real);
    let bits = 1u32 | 0x1f << 6 | 0x3f << 12;
    assert_eq!(
        shown(f6, &[3], &bits.to_le_bytes()[..3]),
        "[ 0.125  7.5   -7.5  ]"
    );
}

#[test]
fn numbers_of_128_bits_are_shown_like_others() {
    let f128 = DType::Number(Scalar::F128, Lanes::Real);
    assert_eq!(shown(f128, &[1], &1u128.to_le_bytes()), "[6.e-4966]");
}

#[test]
fn elements_of_several_numbers_are_in_parentheses() {
    let dtype = DType::Number(Scalar::I8, Lanes::Quaternion);
    assert_eq!(
        shown(dtype, &[2], &[1, 255, 3, 4, 10, 0, 0, 0]),
        "[( 1, -1, 3, 4) (10,  0, 0, 0)]"
    );
    assert_eq!(shown(dtype, &[], &[1, 255, 3, 4]), "(1, -1, 3, 4)");
}
