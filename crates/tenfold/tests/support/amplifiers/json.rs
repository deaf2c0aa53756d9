//! JSON: safetensors and the manifests of mag.

use super::*;

fn json_list(item: &str, len: usize) -> String {
    let count = (len / (item.len() + 1)).max(1);
    let mut list = format!("{item},").repeat(count);
    list.pop();
    format!("[{list}]")
}

fn json_map(value: &str, len: usize) -> String {
    let count = len / (value.len() + 7);
    let entries: Vec<_> = (0..count)
        .map(|n| format!("\"{}\":{value}", key(n)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

type JsonPayload = (&'static str, Box<dyn Fn(usize) -> String>);

fn json_payloads() -> Vec<JsonPayload> {
    let mut all: Vec<JsonPayload> = Vec::new();
    let items = [
        ("numbers", "0"),
        ("floats", "1."),
        ("floats with an exponent", "1e0"),
        ("bools", "true"),
        ("nulls", "null"),
        ("long numbers", "99999999999999999999"),
        ("empty texts", "\"\""),
        ("escapes", "\"\\n\""),
        ("empty lists", "[]"),
        ("empty maps", "{}"),
        ("lists of one", "[0]"),
        ("maps of one", "{\"\":0}"),
        ("numbers and texts", "0,\"\""),
    ];
    for (what, item) in items {
        // A point needs a digit.
        let item = if item == "1." { "1.5" } else { item };
        all.push((what, Box::new(move |len| json_list(item, len))));
    }
    for (what, value) in [
        ("a map of numbers", "0"),
        ("a map of empty texts", "\"\""),
        ("a map of texts", "\"x\""),
        ("a map of empty lists", "[]"),
        ("a map of lists of one", "[0]"),
        ("a map of maps of one", "{\"\":0}"),
    ] {
        all.push((what, Box::new(move |len| json_map(value, len))));
    }
    let repeated = |len: usize| {
        let list = json_list("\"\":0", len);
        format!("{{{}}}", &list[1..list.len() - 1])
    };
    all.push(("a map of one key", Box::new(repeated)));
    let escaped = |len: usize| format!("\"{}\"", "\\u0001".repeat(len / 6));
    all.push(("one long text of escapes", Box::new(escaped)));
    let deep = |len| {
        let list = json_list("0", len);
        format!("{}{list}{}", "[".repeat(40), "]".repeat(40))
    };
    all.push(("numbers in lists in lists", Box::new(deep)));
    all
}

pub fn mag_manifest(usr: &str, tensors: &str, others: &str) -> Vec<u8> {
    let manifest = format!(
        "{{\"manifest_ver\":1,\"timestamp\":\"\",\"magnetron_ver\":\"\",\"snapshot_ver\":\"0.3.0\",\
         \"usr_metadata\":{usr},\"tensor_map\":{tensors}{others}}}"
    );
    let mut out = b"MAG!".to_vec();
    out.extend(300u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    let end = (44 + manifest.len() as u64).next_multiple_of(4096);
    for number in [44, manifest.len() as u64, end, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(manifest.as_bytes());
    out.resize(usize::try_from(end).unwrap(), 0);
    out
}

pub fn safetensors(header: &str) -> Vec<u8> {
    let mut header = header.to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

/// The entries of a map, to stand behind others.
fn more(map: &str) -> String {
    format!(",{}", &map[1..map.len() - 1])
}

pub(super) fn fill(all: &mut Vec<Amplifier>) {
    const MAG_TENSOR: &str =
        "\"shape\":[0],\"dtype\":\"u8\",\"dtype_id\":8,\"offset\":0,\"nbytes\":0";
    const EMPTY: &str = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    for (what, make) in json_payloads() {
        let make: Arc<dyn Fn(usize) -> String> = Arc::from(make);
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a value: {what}"),
            "a.mag",
            move |len| mag_manifest(&format!("{{\"k\":{}}}", of(len)), "{}", ""),
        );
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a field of a tensor: {what}"),
            "a.mag",
            move |len| {
                let tensor = format!("{{\"a\":{{{MAG_TENSOR},\"x\":{}}}}}", of(len));
                mag_manifest("{}", &tensor, "")
            },
        );
        let of = make.clone();
        add(
            all,
            format!("mag manifest, a field: {what}"),
            "a.mag",
            move |len| mag_manifest("{}", "{}", &format!(",\"x\":{}", of(len))),
        );
        if what.starts_with("a map of") {
            let of = make.clone();
            add(
                all,
                format!("mag manifest, values: {what}"),
                "a.mag",
                move |len| mag_manifest(&of(len), "{}", ""),
            );
            let of = make.clone();
            add(
                all,
                format!("mag manifest, fields of a tensor: {what}"),
                "a.mag",
                move |len| {
                    let tensor = format!("{{\"a\":{{{MAG_TENSOR}{}}}}}", more(&of(len)));
                    mag_manifest("{}", &tensor, "")
                },
            );
            {
                let of = make.clone();
                add_refused(
                    all,
                    format!("mag manifest, fields: {what}"),
                    "a.mag",
                    move |len| mag_manifest("{}", "{}", &more(&of(len))),
                );
            }
        }
        let of = make;
        add_refused(
            all,
            format!("safetensors index, metadata: {what}"),
            "a.safetensors.index.json",
            move |len| {
                format!(
                    "{{\"metadata\":{{\"x\":{}}},\"weight_map\":{{\"a\":\"a.safetensors\"}}}}",
                    of(len)
                )
                .into_bytes()
            },
        );
    }
    add(all, "mag manifest, tensors", "a.mag", |len| {
        mag_manifest("{}", &json_map(&format!("{{{MAG_TENSOR}}}"), len), "")
    });
    add(all, "mag manifest, shapes", "a.mag", |len| {
        let tensor = MAG_TENSOR.replace("[0]", &json_list("0", 2000));
        mag_manifest("{}", &json_map(&format!("{{{tensor}}}"), len), "")
    });
    add_refused(all, "mag manifest, a shape", "a.mag", |len| {
        let sizes = json_list("0", len);
        let tensor = MAG_TENSOR.replace("[0]", &sizes);
        mag_manifest("{}", &format!("{{\"a\":{{{tensor}}}}}"), "")
    });
    add(all, "safetensors, tensors", "a.safetensors", |len| {
        safetensors(&json_map(EMPTY, len))
    });
    add(all, "safetensors, metadata", "a.safetensors", |len| {
        safetensors(&format!("{{\"__metadata__\":{}}}", json_map("\"\"", len)))
    });
    add(all, "safetensors, one text", "a.safetensors", |len| {
        let text = "\\u0001".repeat(len / 6);
        safetensors(&format!("{{\"__metadata__\":{{\"a\":\"{text}\"}}}}"))
    });
    add_refused(all, "safetensors, a shape", "a.safetensors", |len| {
        let tensor = EMPTY.replace("[0]", &json_list("0", len));
        safetensors(&format!("{{\"a\":{tensor}}}"))
    });
    add(all, "safetensors, shapes", "a.safetensors", |len| {
        let tensor = EMPTY.replace("[0]", &json_list("0", 64));
        safetensors(&json_map(&tensor, len))
    });
    add(all, "safetensors, a name", "a.safetensors", |len| {
        let name = "\\u0001".repeat(len / 6);
        safetensors(&format!("{{\"{name}\":{EMPTY}}}"))
    });
    add_refused(
        all,
        "safetensors index, tensors",
        "a.safetensors.index.json",
        |len| format!("{{\"weight_map\":{}}}", json_map("\"a\"", len)).into_bytes(),
    );
    add_refused(
        all,
        "safetensors index, tensors and files",
        "a.safetensors.index.json",
        |len| {
            let count = len / 13;
            let entries: Vec<_> = (0..count)
                .map(|n| format!("\"{0}\":\"{0}\"", key(n)))
                .collect();
            format!("{{\"weight_map\":{{{}}}}}", entries.join(",")).into_bytes()
        },
    );
}
