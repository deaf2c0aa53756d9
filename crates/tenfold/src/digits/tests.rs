//! Texts beside what other programs say of the same bits.

use super::*;
use crate::model::Lanes;

fn of(scalar: Scalar, bits: u128) -> String {
    Float::new(scalar, bits).unwrap().to_string()
}

#[test]
fn every_number_of_16_bits_reads_back() {
    for bits in 0..=u16::MAX {
        for scalar in [Scalar::F16, Scalar::BF16] {
            let value = scalar.to_f64(bits.into());
            let read: f64 = of(scalar, bits.into()).parse().unwrap();
            assert!(
                read == value || value.is_nan() && read.is_nan(),
                "{bits:#x}"
            );
        }
    }
}

/// Values of `ml_dtypes` for the same codes.
#[test]
fn small_numbers_have_the_values_of_their_types() {
    assert_eq!(of(Scalar::F8E4M3, 0x01), "0.001953125");
    assert_eq!(of(Scalar::F8E4M3, 0x7e), "448.0");
    assert_eq!(of(Scalar::F8E4M3, 0xff), "nan");
    assert_eq!(of(Scalar::F8E4M3Fnuz, 0x01), "0.0009765625");
    assert_eq!(of(Scalar::F8E4M3Fnuz, 0x80), "nan");
    assert_eq!(of(Scalar::F8E4M3Fnuz, 0xff), "-240.0");
    assert_eq!(of(Scalar::F8E5M2, 0x01), "1.52587890625e-05");
    assert_eq!(of(Scalar::F8E5M2, 0xfc), "-inf");
    assert_eq!(of(Scalar::F8E5M2, 0x7b), "57344.0");
    assert_eq!(of(Scalar::F8E5M2Fnuz, 0x7f), "57344.0");
    assert_eq!(of(Scalar::F8E8M0, 0x7f), "1.0");
    assert_eq!(of(Scalar::F8E8M0, 0x00), "5.877471754111438e-39");
    assert_eq!(of(Scalar::F6E2M3, 0x07), "0.875");
    assert_eq!(of(Scalar::F6E2M3, 0x3f), "-7.5");
    assert_eq!(of(Scalar::F6E3M2, 0x1f), "28.0");
    assert_eq!(of(Scalar::F4E2M1, 0x0f), "-6.0");
}

#[test]
fn numbers_of_128_bits_have_the_fewest_digits_that_tell_them_apart() {
    let of = |bits| of(Scalar::F128, bits);
    assert_eq!(of(0x3ffb_9999_9999_9999_9999_9999_9999_999a), "0.1");
    assert_eq!(of(0x3fff << 112), "1.0");
    // pi is 3.14159265358979323846264338327950288..
    let pi = 0x4000_921f_b544_42d1_8469_898c_c517_01b8;
    assert_eq!(of(pi), "3.1415926535897932384626433832795028");
    assert_eq!(of(1), "6e-4966");
    assert_eq!(
        of(0x7ffe << 112 | ((1 << 112) - 1)),
        "1.189731495357231765085759326628007e+4932"
    );
    assert_eq!(of(0x8000 << 112), "-0.0");
    assert_eq!(of(0xffff << 112), "-inf");
    assert_eq!(of(0x7fff << 112 | 1), "nan");
}

#[test]
fn elements_are_text_with_all_their_numbers() {
    let text_of = |dtype, bytes: &[u8]| {
        let mut element = Vec::new();
        numbers(dtype, bytes, |number| element.push(number));
        text(&element)
    };
    assert_eq!(text_of(DType::U64, &[0xff; 8]), "18446744073709551615");
    assert_eq!(text_of(DType::I8, &[0x80]), "-128");
    assert_eq!(text_of(DType::BOOL, &[1]), "True");
    let bytes = [0.5f32, -2.0].map(f32::to_le_bytes).concat();
    assert_eq!(text_of(DType::C64, &bytes), "(0.5-2j)");
    let four = DType::Number(Scalar::I8, Lanes::Quaternion);
    assert_eq!(text_of(four, &[1, 0xff, 3, 4]), "(1, -1, 3, 4)");
}
