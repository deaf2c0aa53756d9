use super::*;
use crate::error::Result;

/// Lets what is called `ok` be loaded.
struct Ok_ {
    lenient: bool,
    seen: Vec<String>,
}

impl Policy for Ok_ {
    fn import(&mut self, import: Import<'_>) -> Result<()> {
        let global = format!("{}.{}", import.module, import.name);
        self.seen.push(global.clone());
        if import.module == "ok" || self.lenient {
            return Ok(());
        }
        Err(Error::unsupported("pickle-global", global))
    }

    fn may_build(&self, module: &str, name: &str) -> bool {
        (module, name) == ("ok", "Built")
    }

    fn is_lenient(&self) -> bool {
        self.lenient
    }
}

fn policy(lenient: bool) -> Ok_ {
    Ok_ {
        lenient,
        seen: Vec::new(),
    }
}

fn with<T>(bytes: &[u8], use_root: impl FnOnce(Value<'_>) -> T) -> Result<T> {
    let mut budget = Budget::new(1 << 16);
    let tree = run(bytes, &Place::At(0), &mut policy(false), &mut budget)?;
    Ok(use_root(tree.root()?))
}

fn refused(bytes: &[u8]) -> String {
    let error = with(bytes, |_| ()).unwrap_err().in_format("t");
    format!("{} {}", error.rule(), error.message())
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Integer(digits) => text::decimal(digits),
        Value::Node(node) if matches!(node.kind(), Kind::Dict) => {
            let entries = node.entries().map(|entry| {
                let (key, value) = entry.unwrap();
                format!("{}: {}", shown(&key), shown(&value))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Node(node) if matches!(node.kind(), Kind::Call | Kind::New) => {
            let object = node.object().unwrap();
            let states = node.states().map(|state| shown(&state.unwrap()));
            let states = states.collect::<Vec<_>>().join(", ");
            format!(
                "{}{}[{states}]",
                object.function.what(),
                shown(&object.arguments)
            )
        }
        Value::Node(node) => {
            let items: Vec<_> = node.items().map(|item| shown(&item.unwrap())).collect();
            format!("{:?}({})", node.kind(), items.join(", "))
        }
        other => other.what(),
    }
}

fn read(bytes: &[u8]) -> String {
    with(bytes, |value| shown(&value)).unwrap()
}

#[test]
fn values_of_every_protocol_are_read() {
    for (bytes, expected) in [
        (&b"N."[..], "None"),
        (b"\x80\x02\x88.", "True"),
        (b"I01\n.", "True"),
        (b"I-12\n.", "-12"),
        (
            b"L123456789012345678901234567890L\n.",
            "123456789012345678901234567890",
        ),
        (b"L-128\n.", "-128"),
        (b"K\xff.", "255"),
        (b"M\xff\xff.", "65535"),
        (b"J\xff\xff\xff\xff.", "-1"),
        (b"\x8a\x00.", "0"),
        (b"\x8a\x01\x80.", "-128"),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\x40.", "1180591620717411303424"),
        (b"F2.5\n.", "2.5"),
        (b"G\x3f\xf8\0\0\0\0\0\0.", "1.5"),
        (b"S'a\\x41\\n\\101'\n.", "\"aA\\nA\""),
        (b"U\x02hi.", "\"hi\""),
        (b"U\x01\xff.", "1 bytes"),
        (b"V\\u4f60\xe9\n.", "\"你é\""),
        (b"X\x02\0\0\0\xc3\xa9.", "\"é\""),
        (b"C\x02\0\xff.", "2 bytes"),
        (b"(K\x01K\x02l.", "List(1, 2)"),
        (b"](K\x01K\x02eK\x03a.", "List(1, 2, 3)"),
        (b"(U\x01aNU\x01bNd.", "{\"a\": None, \"b\": None}"),
        (b"}(U\x01aNuU\x01bNs.", "{\"a\": None, \"b\": None}"),
        (b"N\x85N\x86.", "Tuple(Tuple(None), None)"),
        (b"\x8f(NN\x90.", "Set(None, None)"),
        (b"]q\x00h\x00\x86.", "Tuple(List(), List())"),
        (b"cok\nf\nN\x85R.", "ok.fTuple(None)[]"),
        (b"cok\nBuilt\n)\x81}b.", "ok.BuiltTuple()[{}]"),
        (b"\x8c\x02ok\x8c\x01f\x93)R.", "ok.fTuple()[]"),
        (b"\x80\x04\x95\x02\0\0\0\0\0\0\0N\x94.", "None"),
    ] {
        assert_eq!(read(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_not_allowed_is_named_where_it_is_loaded() {
    for (bytes, expected) in [
        (
            &b"cos\nsystem\n0N."[..],
            "t.pickle-global os.system (GLOBAL, byte 0",
        ),
        (
            b"N\x8c\x02os\x8c\x06system\x93.",
            "t.pickle-global os.system (STACK_GLOBAL, byte 13",
        ),
        (
            b"(ios\nsystem\n.",
            "t.pickle-global os.system (INST, byte 1",
        ),
        (
            b"(iok\nf\n.",
            "t.pickle-opcode ok.f is called (INST, byte 1",
        ),
        (
            b"(cok\nf\no.",
            "t.pickle-opcode ok.f is called (OBJ, byte 7",
        ),
        (b"\x82\x01.", "t.pickle-opcode an extension"),
        (b"Pid\n.", "t.pickle-opcode data outside"),
        (b"cok\nf\n)R}b.", "t.pickle-global a state is given to ok.f"),
        (b"]}b.", "t.pickle-global a state is given to a list"),
        (b"\x80\x09N.", "t.pickle-protocol protocol 9"),
        (b"\xfe.", "t.pickle-opcode 0xfe is not an opcode"),
        (
            b"R.",
            "t.pickle the stack has too few values (REDUCE, byte 0",
        ),
        (b"h\x00.", "t.pickle entry 0 of the memo"),
        (b"N", "t.truncated the pickle ends without STOP"),
        (
            b"X\xff\xff\xff\x7fa",
            "t.truncated the opcode takes 2147483652 bytes, 6 are left",
        ),
        (
            b"T\xff\xff\xff\xffa",
            "t.pickle BINSTRING announces -1 bytes",
        ),
        (b"(N1.", "t.pickle the stack has too few"),
        (b"N(0.", ""),
        (
            b"}(NuN.",
            "t.pickle 1 values do not pair up as keys and values",
        ),
        (b"NNa.", "t.pickle items are added to None"),
        (b"N)R.", "t.pickle None is called"),
        (b"cok\nf\nNR.", "t.pickle arguments are a tuple, found None"),
    ] {
        if expected.is_empty() {
            assert!(with(bytes, |_| ()).is_ok());
            continue;
        }
        let found = refused(bytes);
        assert!(found.starts_with(expected), "{found}, not {expected}");
    }
}

#[test]
fn a_lenient_policy_follows_every_opcode_and_sees_every_global() {
    let program = b"(cos\nsystem\nU\x01ao(iposix\npopen\n\x82\x05cx\ny\nN\x85R}b\x87.";
    let mut policy = policy(true);
    let tree = run(
        program,
        &Place::At(0),
        &mut policy,
        &mut Budget::new(1 << 12),
    )
    .unwrap();
    assert!(tree.root().is_ok());
    let expected = [
        "os.system",
        "posix.popen",
        "copyreg._inverted_registry[5]",
        "x.y",
    ];
    assert_eq!(policy.seen, expected);
}

#[test]
fn a_program_that_asks_for_too_much_is_refused() {
    for piece in [&b"]"[..], b")", b"(", b"N\x85", b"]q\xff", b"r\xff\0\0\0"] {
        let mut program = vec![b'N'];
        program.extend(core::iter::repeat_n(piece, 1 << 14).flatten());
        let mut budget = Budget::new(1 << 12);
        let run = run(&program, &Place::At(0), &mut policy(false), &mut budget);
        let error = run.err();
        // Setting the same entry of the memo again takes nothing.
        if let Some(error) = error {
            assert!(
                ["file.limit", "file.truncated"].contains(&error.rule()),
                "{error}"
            );
        }
    }
}

#[test]
fn programs_one_after_the_other_are_told_apart_in_windows_of_any_size() {
    #[derive(Debug)]
    struct Windowed(bytes::Bytes, u64);
    impl crate::io::Source for Windowed {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }
        fn read(&self, range: Range<u64>) -> Result<bytes::Bytes> {
            self.0.read(range)
        }
        fn window(&self) -> u64 {
            self.1
        }
    }
    let file = bytes::Bytes::from_static(b"K\x01.cok\nf\n.X\x03\0\0\0a.b.rest");
    for window in [1, 3, 1000] {
        let source = Windowed(file.clone(), window);
        let mut at = 0;
        for expected in [&b"K\x01."[..], b"cok\nf\n.", b"X\x03\0\0\0a.b."] {
            let found = read_next(&source, at, 1 << 20).unwrap();
            assert_eq!(found, expected);
            at += found.len() as u64;
        }
        assert!(read_next(&source, at, 1 << 20).is_err());
    }
    assert_eq!(find_end(b"N.x").unwrap(), Some(2));
    assert_eq!(find_end(b"N").unwrap(), None);
}
