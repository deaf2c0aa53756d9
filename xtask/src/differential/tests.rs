use super::references::REFERENCES;
use super::*;

const REFERENCE: Reference = Reference {
    format: "npy",
    installs: &["numpy==0"],
    program: "",
    stricter: &["npy.void"],
    all_or_nothing: false,
    laxer: &[("too young", "we read it")],
};

fn found(theirs: &str, ours: [&str; 3]) -> Vec<String> {
    let theirs = their_view(theirs.as_bytes()).unwrap();
    let [verified, inspected, digests] = ours.map(|text| serde_json::from_str(text).unwrap());
    let ours = our_view(&verified, &inspected, &digests).unwrap();
    let mut tally = Tally::default();
    tally.judge(&REFERENCE, &theirs, &ours);
    tally.disagreements
}

const SOUND: &str = r#"{"findings": []}"#;

fn refused(rule: &str) -> [String; 3] {
    let inspected = format!(r#"{{"error": "x.npy: npy: no (at byte 3) [{rule}]"}}"#);
    [SOUND.into(), inspected, "{}".into()]
}

fn holding(sha256: &str) -> [String; 3] {
    let inspected = r#"{"tensors": [{"name": "a", "dtype": "f32", "shape": [2]}], "metadata": {}}"#;
    let digests = format!(r#"{{"tensors": [{{"name": "a", "sha256": "{sha256}"}}]}}"#);
    [SOUND.into(), inspected.into(), digests]
}

fn of(theirs: &str, ours: &[String; 3]) -> Vec<String> {
    let [a, b, c] = ours;
    found(theirs, [a, b, c])
}

#[test]
fn the_same_content_and_two_refusals_are_agreement() {
    let takes = r#"{"file": "x", "tensors": [{"name": "a", "dtype": "f32", "shape": [2], "sha256": "00"}]}"#;
    let refuses = r#"{"file": "x", "refused": "no"}"#;
    assert!(of(takes, &holding("00")).is_empty());
    assert!(of(refuses, &refused("npy.header")).is_empty());
    assert_eq!(of(takes, &holding("01")).len(), 1);
}

#[test]
fn who_refuses_alone_needs_a_documented_reason() {
    let takes = r#"{"file": "x", "tensors": [{"name": "a", "dtype": "f32", "shape": [2], "sha256": "00"}]}"#;
    assert!(of(takes, &refused("npy.void")).is_empty());
    assert_eq!(of(takes, &refused("npy.header")).len(), 1);
    let young = r#"{"file": "x", "refused": "ValueError: too young"}"#;
    assert!(of(young, &holding("00")).is_empty());
    let other = r#"{"file": "x", "refused": "ValueError: too old"}"#;
    assert_eq!(of(other, &holding("00")).len(), 1);
}

#[test]
fn what_is_not_odd_is_taken() {
    let takes = r#"{"file": "x", "change": "nothing odd", "tensors": [{"name": "a", "dtype": "f32", "shape": [2], "sha256": "00"}]}"#;
    assert_eq!(of(takes, &refused("npy.void")).len(), 1);
    assert!(of(takes, &holding("00")).is_empty());
}

#[test]
fn tensors_of_a_file_are_judged_one_by_one() {
    let theirs = r#"{"file": "x", "tensors": [{"name": "a", "refused": "no"}]}"#;
    assert_eq!(of(theirs, &holding("00")).len(), 1);
    let both = r#"{"file": "x", "tensors": [
        {"name": "a", "dtype": "f32", "shape": [2], "sha256": "00"},
        {"name": "b", "dtype": "f32", "shape": [2], "sha256": "00"}]}"#;
    assert_eq!(of(both, &holding("00")).len(), 1);
}

#[test]
fn what_is_stricter_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats");
    for reference in REFERENCES {
        let page = fs::read_to_string(root.join(format!("{}.md", reference.format))).unwrap();
        for rule in reference.stricter {
            // `npz.string` and others are on the page of the arrays themselves.
            let topic = rule.strip_prefix("npz.").unwrap_or(rule);
            let array = format!("`npy.{topic}`");
            let arrays = fs::read_to_string(root.join("npy.md")).unwrap();
            let known = page.contains(&format!("`{rule}`")) || arrays.contains(&array);
            assert!(known, "{rule} is not on the page of {}", reference.format);
        }
    }
}
