use super::*;

const RULES: Rules = Rules {
    syntax: "test.syntax",
    text: "test.text",
    depth: "test.depth",
};

fn json(text: &[u8]) -> Result<Json<'_>> {
    Json::new(text, 100, 8, &RULES)
}

fn refused(text: &str) -> Error {
    let mut json = json(text.as_bytes()).unwrap();
    json.skip()
        .and_then(|()| json.end())
        .expect_err("should be refused")
}

#[test]
fn a_known_document_is_pulled_without_a_tree() {
    let text = br#" { "a" : [1, -22], "b\n":"x", "rest": {"deep":[{}]} } "#;
    let mut json = json(text).unwrap();
    json.object("it").unwrap();
    assert_eq!(json.key().unwrap().unwrap(), "a");
    json.list("a").unwrap();
    assert!(json.item().unwrap());
    assert_eq!(json.whole("a").unwrap(), "1");
    assert!(json.item().unwrap());
    assert_eq!(json.whole("a").unwrap(), "-22");
    assert!(!json.item().unwrap());
    assert_eq!(json.key().unwrap().unwrap(), "b\n");
    json.skip().unwrap();
    assert_eq!(json.key().unwrap().unwrap(), "rest");
    json.skip().unwrap();
    assert_eq!(json.key().unwrap(), None);
    json.end().unwrap();
}

#[test]
fn the_places_of_errors_are_those_of_the_file() {
    let error = refused(r#"{"a": tru}"#);
    assert_eq!(error.rule(), "test.syntax");
    assert_eq!(error.range().unwrap().1, 106..107);
    let error = json(b"\"ab\xff\"").err().unwrap();
    assert_eq!(error.rule(), "test.text");
    assert_eq!(error.range().unwrap().1, 103..104);
}

#[test]
fn what_is_not_json_is_refused() {
    let wrong = [
        "",
        "{",
        "[1,]",
        "[1 2]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "01",
        "-",
        "1.",
        "1e",
        ".5",
        "+1",
        "\"a",
        "\"\t\"",
        "\"\\x\"",
        "\"\\u12\"",
        "nul",
        "-NaN",
        "1 2",
        "[",
        "]",
        "'a'",
        "[1]\0",
        "\"a\0\"",
    ];
    for text in wrong {
        assert_eq!(refused(text).rule(), "test.syntax", "{text:?}");
    }
    assert!(json("\u{feff}{}".as_bytes()).is_err());
}

#[test]
fn escapes_mean_characters_and_half_pairs_do_not() {
    let text = br#""\u0041\ud83d\ude00\/\\\"\b\f\n\r\t\u0000""#;
    let got = json(text).unwrap().value(&mut |_, _| Ok(())).unwrap();
    assert_eq!(got.as_str(), Some("A😀/\\\"\u{8}\u{c}\n\r\t\0"));
    for half in [
        r#""\ud800""#,
        r#""\udc00x""#,
        r#""\ud800\u0041""#,
        r#""\ud83d\ud83d""#,
    ] {
        assert_eq!(refused(half).rule(), "test.text", "{half}");
    }
}

#[test]
fn depth_is_refused_without_using_up_the_stack() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(refused(&deep).rule(), "test.depth");
    let error = json(deep.as_bytes()).unwrap().value(&mut |_, _| Ok(()));
    assert_eq!(error.unwrap_err().rule(), "test.depth");
    let fits = format!("{}{}", "[".repeat(8), "]".repeat(8));
    json(fits.as_bytes()).unwrap().skip().unwrap();
}

#[test]
fn a_wrong_kind_says_what_was_expected() {
    let error = json(b"[1]").unwrap().object("the manifest").unwrap_err();
    assert_eq!(
        error.message(),
        "the manifest must be an object, found a list"
    );
    let error = json(b"1.0").unwrap().whole("offset").unwrap_err();
    assert_eq!(error.message(), "offset must be a whole number, found 1.0");
}
