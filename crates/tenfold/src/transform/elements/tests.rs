use super::*;

const LITTLE: Endian = Endian::Little;
const BIG: Endian = Endian::Big;

fn map(from: (DType, Endian), to: (DType, Endian), bytes: impl Into<Vec<u8>>) -> Result<Vec<u8>> {
    let mut bytes = bytes.into();
    let map = ElementMap::new(from.0, from.1, to.0, to.1)?;
    let expected = map.output_len(bytes.len() as u64)?;
    map.apply(&mut bytes, None)?;
    assert_eq!(bytes.len() as u64, expected);
    Ok(bytes)
}

#[test]
fn equal_forms_change_nothing() {
    for dtype in DType::all().filter(|dtype| !matches!(dtype, DType::Number(Scalar::Bool, _))) {
        assert!(
            ElementMap::new(dtype, BIG, dtype, BIG)
                .unwrap()
                .is_identity(),
            "{dtype}"
        );
    }
}

#[test]
fn the_byte_order_changes_by_number_not_by_element() {
    let swapped = map(
        (DType::C64, BIG),
        (DType::C64, LITTLE),
        [1, 2, 3, 4, 5, 6, 7, 8],
    );
    assert_eq!(swapped.unwrap(), [4, 3, 2, 1, 8, 7, 6, 5]);
    // Bytes and bits have no order.
    for dtype in [DType::U8, DType::F8_E4M3, DType::F4_E2M1] {
        let kept = map((dtype, BIG), (dtype, LITTLE), [1, 2, 3]).unwrap();
        assert_eq!(kept, [1, 2, 3], "{dtype}");
    }
}

#[test]
fn a_bool_is_0_or_1_whatever_was_stored() {
    for endian in [LITTLE, BIG] {
        let found = map((DType::BOOL, LITTLE), (DType::BOOL, endian), [0, 1, 2, 255]);
        assert_eq!(found.unwrap(), [0, 1, 1, 1]);
    }
}

#[test]
fn a_cast_reads_and_writes_in_the_byte_orders_of_both_sides() {
    let values = [-2i16, 300];
    for from in [LITTLE, BIG] {
        for to in [LITTLE, BIG] {
            let stored: Vec<u8> = (values.iter())
                .flat_map(|value| match from {
                    LITTLE => value.to_le_bytes(),
                    BIG => value.to_be_bytes(),
                })
                .collect();
            let expected: Vec<u8> = (values.iter())
                .flat_map(|&value| match to {
                    LITTLE => f32::from(value).to_le_bytes(),
                    BIG => f32::from(value).to_be_bytes(),
                })
                .collect();
            let found = map((DType::I16, from), (DType::F32, to), stored).unwrap();
            assert_eq!(found, expected, "{from} to {to}");
        }
    }
}

#[test]
fn casts_between_kinds_that_do_not_match_are_refused() {
    let block = DType::from_name("gguf:Q8_0").unwrap();
    for (from, to) in [
        (DType::C64, DType::F32),
        (block, DType::F32),
        (DType::F32, block),
        (DType::PARTS, DType::F32),
    ] {
        let error = map((from, LITTLE), (to, LITTLE), []).unwrap_err();
        assert_eq!(
            error.kind(),
            crate::ErrorKind::Unsupported,
            "{from} to {to}"
        );
    }
}

#[test]
fn numbers_of_less_than_a_byte_are_cast_in_both_directions() {
    // 0.5, -6, 2, 0 in halves of bytes, the first in the lower one.
    let wide: Vec<u8> = [0.5f32, -6.0, 2.0, 0.0]
        .into_iter()
        .flat_map(f32::to_be_bytes)
        .collect();
    let found = map((DType::F4_E2M1, LITTLE), (DType::F32, BIG), [0xf1, 0x04]).unwrap();
    assert_eq!(found, wide);
    let found = map((DType::F32, BIG), (DType::F4_E2M1, LITTLE), wide).unwrap();
    assert_eq!(found, [0xf1, 0x04]);
}

#[test]
fn an_element_gets_more_numbers_and_they_are_zero() {
    let quaternion = DType::Number(Scalar::I16, Lanes::Quaternion);
    let complex: Vec<u8> = [3f32, -4.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    let found = map((DType::C64, LITTLE), (quaternion, LITTLE), complex).unwrap();
    assert_eq!(found, [3, 0, 0xfc, 0xff, 0, 0, 0, 0]);
}

#[test]
fn bytes_that_are_no_bool_are_found_anywhere() {
    assert!(check_content(DType::BOOL, &[0, 1, 1], true, 3).is_none());
    assert!(check_content(DType::BOOL, &[0, 2, 1], false, 9).is_some());
    assert!(check_content(DType::U8, &[255], true, 1).is_none());
}

#[test]
fn set_bits_behind_the_last_element_are_found_in_the_last_byte_only() {
    let u4 = DType::Number(Scalar::U4, Lanes::Real);
    assert!(check_content(u4, &[0xff, 0x0f], true, 3).is_none());
    assert!(check_content(u4, &[0xff, 0x1f], true, 3).is_some());
    assert!(check_content(u4, &[0xff, 0xff], true, 4).is_none());
    assert!(check_content(u4, &[0xff, 0xff], false, 3).is_none());
    let f6 = DType::Number(Scalar::F6E2M3, Lanes::Real);
    assert!(check_content(f6, &[0xff, 0x0f], true, 2).is_none());
    assert!(check_content(f6, &[0xff, 0x10], true, 2).is_some());
    let u1 = DType::Number(Scalar::U1, Lanes::Real);
    for elements in 1..=8u8 {
        let full = u8::try_from((1u16 << elements) - 1).unwrap();
        assert!(check_content(u1, &[full], true, elements.into()).is_none());
        if elements < 8 {
            let over = [1 << elements];
            assert!(check_content(u1, &over, true, elements.into()).is_some());
        }
    }
    assert!(check_content(u1, &[], true, 0).is_none());
}
