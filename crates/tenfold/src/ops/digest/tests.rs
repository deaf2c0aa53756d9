//! The test vectors of docs/digest.md, which a program of its own computed.

use super::*;
use crate::digest::Hex;
use crate::model::{OpaqueSpec, Part, Payload, Role, Scheme, TensorInfo};
use crate::{ArchiveBuilder, Bytes};

fn content(tensors: Vec<TensorInfo>) -> String {
    let mut builder = ArchiveBuilder::new();
    for tensor in tensors {
        builder.push_info(tensor).unwrap();
    }
    let digests = digest(&builder.finish(), &DigestOptions::new()).unwrap();
    Hex(&digests.content.unwrap()).to_string()
}

fn dense(name: &str, dtype: DType, shape: &[u64], bytes: &'static [u8]) -> TensorInfo {
    let payload = Payload::Inline(Bytes::from_static(bytes));
    TensorInfo::dense(name, dtype, shape.to_vec(), payload)
}

const PAIR: &[u8] = &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];

fn part(role: &str, dtype: DType, bytes: &'static [u8]) -> Part {
    let payload = Payload::Inline(Bytes::from_static(bytes));
    Part::new(Role::Named(role.into()), dtype, payload)
}

fn ragged(scheme: &str, lengths: &str, dtype: DType) -> TensorInfo {
    let layout = Layout::from(Scheme::new(scheme, ""));
    let mut info = TensorInfo::new("r", DType::PARTS, vec![2], layout);
    let payload = &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40];
    info.parts = vec![
        part("payload", dtype, payload),
        part(lengths, DType::U32, &[1, 0, 0, 0, 2, 0, 0, 0]),
    ]
    .into();
    info
}

#[test]
fn content_of_dense_tensors_is_that_of_the_page() {
    assert_eq!(
        content(Vec::new()),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    for name in ["x", "y"] {
        assert_eq!(
            content(vec![dense(name, DType::F32, &[2], PAIR)]),
            "44abb9700ff92c8977465d2c94841006df950dbb17047f849f16d9b855a34000"
        );
    }
    let b = dense("b", DType::U8, &[3, 1], &[1, 2, 3]);
    let a = dense("a", DType::F64, &[], &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
    assert_eq!(
        content(vec![b, a]),
        "bdd0a97ca984566f62f717cc73b8abed185da078a00b294247de12c285f4093a"
    );
}

#[test]
fn content_of_burn_s_tensors_is_that_of_the_page() {
    const NAME: &str = "burn:QFloat";
    const QFLOAT: DType = DType::Opaque(&OpaqueSpec::new(NAME));
    let of = |parameters: &str| {
        let layout = Layout::from(Scheme::new(NAME, parameters));
        let mut info = TensorInfo::new("q", QFLOAT, vec![2, 2], layout);
        let bytes = Bytes::from_static(&[1, 2, 0xfe, 0xff, 0, 0, 0, 0x3f]);
        info.parts = vec![Part::new(Role::Values, QFLOAT, Payload::Inline(bytes))].into();
        content(vec![info])
    };
    assert_eq!(
        of("Q8S,Native,Symmetric,F32,-"),
        "422c630356f510e957a2c4435ff23e0192094ce73e2dae2ccdb3d5efec24535d"
    );
    assert_ne!(
        of("Q8F,Native,Symmetric,F32,-"),
        of("Q8S,Native,Symmetric,F32,-")
    );
}

#[test]
fn content_of_parts_is_that_of_the_page() {
    let of = |scheme, lengths, dtype| content(vec![ragged(scheme, lengths, dtype)]);
    assert_eq!(
        of("ragged", "lengths", DType::F32),
        "7c9b09d503876ee4e733e1dfd2f01684205dd3c92b98ef05f4781f1c4748ba65"
    );
    assert_eq!(
        of("ragged/2", "lengths", DType::F32),
        "a6a2502c7900bcbff1e41ba80677435b1a9f4f30243ebf3cc192feb6aa86078e"
    );
    assert_eq!(
        of("ragged", "counts", DType::F32),
        "c92ce2674def544534a513110ed815a1f8d01fdc8c22207eeb8c8e1b8978a880"
    );
    assert_eq!(
        of("ragged", "lengths", DType::I32),
        "bae12c2fb975c4c44b70bd53e0a934f04553647ec66727d5a4df771933ddea58"
    );
    let both = vec![
        ragged("ragged", "lengths", DType::F32),
        dense("x", DType::F32, &[2], PAIR),
    ];
    assert_eq!(
        content(both),
        "8eb2705b822b3aa39dc392163db777285a26f9f4506efbe50e9ee674a646850d"
    );
}

#[test]
fn the_digest_of_a_tensor_is_that_of_its_bytes_alone() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push_info(ragged("ragged/2", "counts", DType::I32))
        .unwrap();
    let digests = digest(&builder.finish(), &DigestOptions::new()).unwrap();
    assert_eq!(
        Hex(digests.tensors[0].1.as_ref().unwrap()).to_string(),
        "0ed2fb84de085967d68b44289e4604e8abb52b76e851aca1f2e66ae80d1f14e5"
    );
}

#[test]
fn what_few_bytes_stand_for_shares_one_limit_whatever_its_layout() {
    let mut builder = ArchiveBuilder::new();
    let half = crate::io::Limits::default().dense_bytes / 2 + 1;
    for name in ["a", "b"] {
        let one = Bytes::from_static(&[1]);
        builder.strided(name, DType::U8, [half], [0], one).unwrap();
    }
    let archive = builder.finish();
    let tensors: Vec<_> = archive.tensors().collect();
    let within = within_limit(&archive, &tensors);
    assert!(within[0].is_ok());
    let error = within[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
    assert_eq!(error.tensor(), Some("b"));
}
