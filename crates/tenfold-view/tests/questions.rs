//! What every question is answered. Expected values are computed here, not taken from answers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]
// Of small numbers that the test made itself.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use serde_json::Value;
use tenfold::model::DType;
use tenfold::{Archive, Bytes, Error, half};
use tenfold_view::{Kind, Mode, View};

const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}";

/// A file of safetensors: a header, the data, and four bytes that belong to nothing.
fn file(tensors: &[(&str, &str, &[u64], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    header.insert(
        "__metadata__".into(),
        serde_json::json!({"author": "me", "long": "x".repeat(1000)}),
    );
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let from = data.len();
        data.extend_from_slice(bytes);
        let entry =
            serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [from, data.len()]});
        header.insert((*name).into(), entry);
    }
    let mut header = serde_json::to_vec(&Value::Object(header)).unwrap();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

fn floats(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn matrix() -> Vec<f32> {
    let mut numbers: Vec<f32> = (0u8..60).map(|n| f32::from(n) - 20.0).collect();
    numbers[17] = f32::NAN;
    numbers[18] = f32::INFINITY;
    numbers[59] = f32::NEG_INFINITY;
    numbers
}

fn view() -> (View, Vec<u8>) {
    let halves = [1.5f32, -0.0, 3e-6, 65504.0].map(half::f16::from_f32);
    let halves: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    let bytes = file(&[
        ("layers.0.w", "F32", &[6, 10], floats(matrix())),
        (HOSTILE, "F16", &[4], halves),
        (
            "scalar",
            "I64",
            &[],
            9_007_199_254_740_993i64.to_le_bytes().to_vec(),
        ),
    ]);
    let view = View::new(Mode::Served);
    let copy = bytes.clone();
    view.add("model.safetensors", move || {
        Archive::from_bytes(copy.clone())
    });
    view.add("broken", || {
        Err(Error::malformed("mag.crc", "stored 1, computed 2").at(4..8))
    });
    (view, bytes)
}

fn ask(view: &View, question: &str) -> Value {
    let answer = view.call(question);
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert_eq!(answer.kind, Kind::Json, "{question}: {text}");
    serde_json::from_slice(&answer.bytes).unwrap()
}

fn refusal(view: &View, question: &str) -> Value {
    let answer = view.call(question);
    assert!(answer.is_refusal(), "{question}");
    serde_json::from_slice(&answer.bytes).unwrap()
}

/// The head and the columns of an answer.
fn columns(view: &View, question: &str) -> (Value, impl Fn(&str) -> Vec<f64> + use<>) {
    let answer = view.call(question);
    assert_eq!(
        answer.kind,
        Kind::Binary,
        "{question}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    let bytes = answer.bytes;
    let len = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&bytes[4..4 + len]).unwrap();
    let data = (4 + len).next_multiple_of(8);
    let described = head["columns"].clone();
    let column = move |name: &str| {
        let found = described.as_array().unwrap().iter();
        let found = found.clone().find(|column| column["name"] == name).unwrap();
        let at = data + found["at"].as_u64().unwrap() as usize;
        let count = found["count"].as_u64().unwrap() as usize;
        assert_eq!(at % 8, 0);
        let width = match found["type"].as_str().unwrap() {
            "f64" => 8,
            "u32" => 4,
            _ => 1,
        };
        let items = bytes[at..at + count * width].chunks(width);
        items
            .map(|item| match item.len() {
                8 => f64::from_le_bytes(item.try_into().unwrap()),
                4 => u32::from_le_bytes(item.try_into().unwrap()).into(),
                _ => item[0].into(),
            })
            .collect()
    };
    (head, column)
}

fn finish(view: &View, question: &str) -> Value {
    let job = ask(view, question)["job"].as_u64().unwrap();
    loop {
        let step = ask(view, &format!("step?job={job}&bytes=64"));
        if step["finished"] == true {
            // What is done stays done.
            assert_eq!(ask(view, &format!("step?job={job}")), step);
            return step["result"].clone();
        }
    }
}

#[test]
fn hello_says_what_there_is() {
    let (view, _) = view();
    let hello = ask(&view, "hello");
    assert_eq!(hello["schema"], "tenfold.view/1");
    assert_eq!(hello["mode"], "served");
    assert_eq!(hello["archives"][0]["name"], "model.safetensors");
    assert_eq!(hello["archives"][1]["a"], 1);
    let formats = hello["formats"].as_array().unwrap();
    assert!(formats.iter().any(|format| format["id"] == "gguf"));
    assert!(hello["archives"][1].get("opened").is_none());
    refusal(&view, "summary?a=1");
    assert_eq!(ask(&view, "hello")["archives"][1]["opened"], false);
}

#[test]
fn a_summary_counts() {
    let (view, bytes) = view();
    let summary = ask(&view, "summary?a=0");
    assert_eq!(summary["format"], "safetensors");
    assert_eq!(summary["bytes"], bytes.len());
    assert_eq!(
        (&summary["tensors"], &summary["elements"]),
        (&3.into(), &65.into())
    );
    assert_eq!(summary["stored"], 60 * 4 + 4 * 2 + 8);
    assert_eq!(summary["types"][0]["name"], "f32");
    assert_eq!(summary["types"][0]["stored"], 240);
    assert_eq!(summary["files"][0]["bytes"], bytes.len());
}

#[test]
fn a_broken_file_is_told_in_the_words_of_the_library() {
    let (view, _) = view();
    let refused = refusal(&view, "summary?a=1");
    assert_eq!(refused["rule"], "mag.crc");
    assert_eq!(refused["error"], "stored 1, computed 2");
    assert_eq!(refused["range"], serde_json::json!([4, 8]));
    for wrong in [
        "summary?a=7",
        "nonsense",
        "tensor?a=0&t=3",
        "step?job=9",
        "stored?a=0&file=4",
    ] {
        assert_eq!(view.call(wrong).kind, Kind::Unknown, "{wrong}");
    }
    for wrong in [
        "summary",
        "summary?a=x",
        "values?a=0&t=0&slice=1:2:0",
        "tile?a=0&t=0&r0=3",
    ] {
        assert_eq!(view.call(wrong).kind, Kind::Refusal, "{wrong}");
    }
}

#[test]
fn columns_have_a_row_for_each_tensor() {
    let (view, bytes) = view();
    let (head, column) = columns(&view, "columns?a=0");
    assert_eq!(head["tensors"], 3);
    assert_eq!(head["dtypes"], serde_json::json!(["f32", "f16", "i64"]));
    assert_eq!(column("stored"), [240.0, 8.0, 8.0]);
    assert_eq!(column("elements"), [60.0, 4.0, 1.0]);
    let data = (bytes.len() - 256) as f64;
    assert_eq!(column("offset"), [data, data + 240.0, data + 248.0]);
    assert_eq!(
        (column("dims"), column("dims_end")),
        (vec![6.0, 10.0, 4.0], vec![2.0, 3.0, 3.0])
    );
    assert_eq!(column("dtype"), [0.0, 1.0, 2.0]);
    assert_eq!(column("flags"), [0.0; 3]);
    let names: Vec<u8> = column("names").iter().map(|byte| *byte as u8).collect();
    assert_eq!(names, format!("layers.0.w{HOSTILE}scalar").into_bytes());
    let (first, second) = (10, 10 + HOSTILE.len());
    let ends = [first, second, second + 6].map(|end| end as f64);
    assert_eq!(column("name_end"), ends);
}

#[test]
fn values_are_exact_and_say_what_they_are() {
    let (view, _) = view();
    let values = ask(&view, "values?a=0&t=0&slice=1,5:10");
    assert_eq!(
        values["texts"],
        serde_json::json!(["-5.0", "-4.0", "nan", "inf", "-1.0"])
    );
    assert_eq!(values["kinds"], "..n+.");
    assert_eq!(values["shape"], serde_json::json!([5]));
    let values = ask(&view, "values?a=0&t=1");
    assert_eq!(values["kinds"], ".0s.");
    assert_eq!(ask(&view, "values?a=0&t=2")["texts"][0], "9007199254740993");
    let whole = (0..101).map(|n| n as f32).collect::<Vec<_>>();
    let mut builder = Archive::builder();
    builder.tensor("w", [101, 100], whole.repeat(100)).unwrap();
    let archive = builder.finish();
    view.add("large", move || Ok(archive.clone()));
    let refused = refusal(&view, "values?a=2&t=0");
    assert_eq!(
        refused["error"],
        "10100 elements were asked for, 10000 are given at once"
    );
}

#[test]
fn a_tile_has_min_max_mean_and_what_is_not_finite() {
    let (view, _) = view();
    let job = ask(&view, "tile?a=0&t=0&h=2&w=5")["job"].as_u64().unwrap();
    let (head, column) = columns(&view, &format!("step?job={job}&bytes=1000000"));
    assert_eq!(
        (&head["finished"], &head["exact"]),
        (&true.into(), &true.into())
    );
    assert_eq!(head["size"], serde_json::json!([2, 5]));
    assert_eq!(
        (&head["nans"], &head["positive_infinities"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&head["min"], &head["max"]),
        (&(-20.0).into(), &38.0.into())
    );
    assert_eq!(head["zeros"], 1);
    let numbers = matrix();
    let mut wanted = [(); 6].map(|()| Vec::new());
    for cell in 0..10 {
        let of = |row: usize, column: usize| row / 3 == cell / 5 && column / 2 == cell % 5;
        let all = (0..60)
            .filter(|n| of(n / 10, n % 10))
            .map(|n| f64::from(numbers[n]));
        let all: Vec<f64> = all.collect();
        let finite: Vec<f64> = all.iter().copied().filter(|n| n.is_finite()).collect();
        wanted[0].push(finite.iter().copied().fold(f64::INFINITY, f64::min));
        wanted[1].push(finite.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        wanted[2].push(finite.iter().sum::<f64>() / finite.len() as f64);
        wanted[3].push(finite.len() as f64);
        wanted[4].push(all.iter().filter(|n| n.is_nan()).count() as f64);
        wanted[5].push(all.iter().filter(|n| **n == f64::NEG_INFINITY).count() as f64);
    }
    for (name, wanted) in ["min", "max", "mean", "finite", "nans", "negative"]
        .iter()
        .zip(wanted)
    {
        assert_eq!(column(name), wanted, "{name}");
    }
    // A part of it, folded and dropped.
    let job = ask(&view, "tile?a=0&t=1&fold=2&r0=1&r1=2&c0=0&c1=2")["job"]
        .as_u64()
        .unwrap();
    let (_, column) = columns(&view, &format!("step?job={job}"));
    let small = f64::from(half::f16::from_f32(3e-6).to_f32());
    assert_eq!(column("mean"), [small, 65504.0]);
    ask(&view, &format!("drop?job={job}"));
    assert_eq!(view.call(&format!("step?job={job}")).kind, Kind::Unknown);
}

#[test]
fn figures_of_one_tensor_and_of_all() {
    let (view, _) = view();
    let one = finish(&view, "stats?a=0&t=0&bins=4");
    let row = &one["tensors"][0];
    assert_eq!(
        (&row["nan"], &row["zeros"], &row["finite"]),
        (&1.into(), &1.into(), &57.into())
    );
    let counts: Vec<u64> = serde_json::from_value(row["histogram"]["counts"].clone()).unwrap();
    // From -20 to 38 in steps of 14.5.
    let finite: Vec<f64> = matrix()
        .iter()
        .map(|n| f64::from(*n))
        .filter(|n| n.is_finite())
        .collect();
    let bin = |n: f64| (((n + 20.0) / 14.5) as usize).min(3);
    let wanted: Vec<_> = (0..4)
        .map(|b| finite.iter().filter(|n| bin(**n) == b).count() as u64)
        .collect();
    assert_eq!(counts, wanted);
    let all = finish(&view, "stats?a=0");
    assert_eq!(all["tensors"].as_array().unwrap().len(), 3);
    assert_eq!(all["total"]["elements"], 65);
}

#[test]
fn verification_and_its_findings() {
    let (view, bytes) = view();
    let verdict = finish(&view, "verify?a=0");
    assert_eq!(verdict["sound"], true);
    assert_eq!(verdict["checked"][0], "3 tensors read");
    assert_eq!(verdict["checked"][1], "3 parts have no checksum");
    assert_eq!(
        ask(&view, "findings?a=0")["findings"],
        serde_json::json!([])
    );
    let mut longer = bytes;
    longer.extend([7; 4]);
    view.add("longer", move || Archive::from_bytes(longer.clone()));
    let found = view.call("findings?a=2");
    let found = String::from_utf8(found.bytes).unwrap();
    assert!(found.contains("safetensors."), "{found}");
}

#[test]
fn bytes_belong_to_something_and_are_shown() {
    let (view, bytes) = view();
    let len = bytes.len();
    let map = ask(&view, "extents?a=0&cells=16");
    assert_eq!((&map["len"], &map["ends"]), (&len.into(), &len.into()));
    let kinds: Vec<u64> = map["extents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|extent| extent[2].as_u64().unwrap())
        .collect();
    assert_eq!(kinds.last(), Some(&1));
    assert_eq!(map["totals"][1], 256);
    let cells = ask(
        &view,
        &format!("extents?a=0&cells=2&from={}&to={len}", len - 256),
    );
    // Three extents are more than two cells: each is data, of the first tensor.
    assert_eq!(cells["cells"]["kind"], serde_json::json!([1, 1]));
    assert_eq!(cells["cells"]["tensor"], serde_json::json!([0, 0]));
    let stored = view.call("stored?a=0&t=0&from=4&n=8");
    assert_eq!(stored.bytes, floats([-19.0, -18.0]));
    assert_eq!(view.call("stored?a=0&file=0&from=8&n=1").bytes, b"{");
    assert!(view.call("stored?a=0&t=2&from=100").bytes.is_empty());
}

#[test]
fn metadata_is_listed_cut_and_found() {
    let (view, _) = view();
    let keys = ask(&view, "meta?a=0");
    let entries = keys["entries"].as_array().unwrap();
    let of = |key: &str| entries.iter().find(|entry| entry["key"] == key).unwrap();
    assert_eq!(
        (&of("author")["value"], &of("author")["cut"]),
        (&"me".into(), &false.into())
    );
    assert_eq!(
        (&of("long")["count"], &of("long")["cut"]),
        (&1000.into(), &true.into())
    );
    assert_eq!(ask(&view, "meta?a=0&key=long")["text"], "x".repeat(1000));
    assert_eq!(view.call("meta?a=0&key=none").kind, Kind::Unknown);
    let mut builder = Archive::builder();
    let tokens: Vec<String> = (0..3000).map(|n| format!("token{n}")).collect();
    builder.meta("tokens", tokens.clone());
    let archive = builder.finish();
    view.add("tokens", move || Ok(archive.clone()));
    let page = ask(&view, "meta?a=2&key=tokens&from=2990&n=100");
    assert_eq!(
        (&page["count"], &page["items"][0]),
        (&3000.into(), &tokens[2990].clone().into())
    );
    assert_eq!(page["items"].as_array().unwrap().len(), 10);
    let found = ask(&view, "meta?a=2&key=tokens&find=n299&n=5");
    assert_eq!(
        (&found["matches"][0]["at"], &found["more"]),
        (&299.into(), &true.into())
    );
}

#[test]
fn differences_of_two() {
    let (view, bytes) = view();
    let mut other = bytes.clone();
    let last = other.len() - 256 + 4;
    other[last..last + 4].copy_from_slice(&100f32.to_le_bytes());
    view.add("other", move || Archive::from_bytes(other.clone()));
    let diff = finish(&view, "diff?a=0&b=2");
    assert_eq!(
        (&diff["equal"], &diff["equal_tensors"]),
        (&false.into(), &2.into())
    );
    assert_eq!(diff["changes"][0]["name"], "layers.0.w");
    assert_eq!(diff["changes"][0]["values"]["max_abs"], 119.0);
    assert_eq!(finish(&view, "diff?a=0&b=2&atol=120")["equal"], true);
    // Under another name nothing is left to compare.
    let diff = finish(&view, "diff?a=0&b=2&from=layers.&to=blk.&names-only");
    assert_eq!(diff["equal_tensors"], 2);
    assert_eq!(view.call("diff?a=0&b=9").kind, Kind::Unknown);
}

#[test]
fn slices_are_saved_as_numpy_reads_them() {
    let (view, _) = view();
    let saved = view.call("npy?a=0&t=0&slice=0:2,1:3");
    assert_eq!(saved.kind, Kind::File);
    let read = Archive::from_bytes(saved.bytes.clone()).unwrap();
    let tensor = read.tensors().next().unwrap();
    assert_eq!(&tensor.info().shape[..], [2, 2]);
    assert_eq!(
        &tensor.typed::<f32>().unwrap()[..],
        [-19.0, -18.0, -9.0, -8.0]
    );
    let saving = view.saving("npy?a=0&t=0&slice=0:2,1:3").unwrap();
    assert_eq!(
        (saving.len(), saving.name()),
        (saved.bytes.len() as u64, "layers.0.w.npy")
    );
    assert!(
        view.saving("npy?a=0&t=1")
            .unwrap()
            .name()
            .starts_with("_img_src_x_onerror")
    );
    // NumPy has no bf16: f32 holds every value of it.
    let mut builder = Archive::builder();
    let bits = half::bf16::from_f32(1.5).to_le_bytes();
    builder
        .push("b", DType::BF16, [1], Bytes::copy_from_slice(&bits))
        .unwrap();
    let archive = builder.finish();
    view.add("bf16", move || Ok(archive.clone()));
    let read = Archive::from_bytes(view.call("npy?a=2&t=0").bytes).unwrap();
    assert_eq!(
        &read.tensors().next().unwrap().typed::<f32>().unwrap()[..],
        [1.5]
    );
}

#[test]
fn code_quotes_names() {
    let (view, _) = view();
    let code = ask(&view, "snippet?a=0&t=1&slice=0:2");
    let of = |language: &str| {
        let snippets = code["snippets"].as_array().unwrap();
        let found = snippets
            .iter()
            .find(|snippet| snippet["language"] == language);
        found.unwrap()["code"].as_str().unwrap().to_owned()
    };
    // What turns text around is written out in each of them.
    let plain = HOSTILE.strip_suffix('\u{202e}').unwrap();
    let python = format!("archive[\"{plain}\\u202e\"][0:2]\n");
    assert!(of("Python").contains(&python), "{}", of("Python"));
    assert!(of("Rust").contains(r"\u{202e}"));
    assert_eq!(
        of("Command"),
        format!("tenfold show model.safetensors $'{plain}\\342\\200\\256' --slice '0:2'\n")
    );
    assert!(of("safetensors").contains("get_slice"));
}

#[test]
fn it_is_said_which_two_were_asked_for_and_what_a_picture_takes() {
    let (view, _) = view();
    assert!(ask(&view, "hello").get("pair").is_none());
    view.compare(1, 0);
    assert_eq!(ask(&view, "hello")["pair"], serde_json::json!([1, 0]));
    // 6 rows of 10 numbers of 4 bytes.
    assert_eq!(ask(&view, "tile?a=0&t=0")["of"], 240);
    assert!(ask(&view, "stats?a=0&t=0").get("of").is_none());
    // Who begins more than a page has room for has forgotten the first.
    let first = ask(&view, "tile?a=0&t=0")["job"].as_u64().unwrap();
    for _ in 0..8 {
        ask(&view, "tile?a=0&t=0");
    }
    let answer = view.call(&format!("step?job={first}&bytes=1"));
    assert_eq!(answer.kind, Kind::Unknown);
}

#[test]
fn what_is_closed_is_gone_and_numbers_stay() {
    let (view, _) = view();
    ask(&view, "close?a=0");
    assert_eq!(view.call("summary?a=0").kind, Kind::Unknown);
    assert_eq!(ask(&view, "hello")["archives"][0]["a"], 1);
}
