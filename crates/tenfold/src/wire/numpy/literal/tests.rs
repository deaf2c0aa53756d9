use super::*;

fn read(text: &str, version: u8) -> Result<Fields> {
    let rules = Rules {
        utf8: version == 3,
        long: version < 3,
        max_rank: 64,
    };
    parse(text.as_bytes(), rules).map_err(|error| error.in_format("npy"))
}

#[test]
fn the_order_of_keys_quotes_and_spaces_mean_nothing() {
    let plain = read(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n",
        1,
    )
    .unwrap();
    assert_eq!(
        (plain.descr.as_str(), plain.fortran_order, &*plain.shape),
        ("<f4", false, &[3, 4][..])
    );
    let odd = read(
        " {\"shape\":(3,4,),\n\t'fortran_order' : True ,\"descr\":'\\x3cf\\u0034'}",
        3,
    )
    .unwrap();
    assert_eq!(
        (odd.descr.as_str(), odd.fortran_order, &*odd.shape),
        ("<f4", true, &[3, 4][..])
    );
    for (text, shape) in [
        ("()", vec![]),
        ("(3,)", vec![3]),
        ("( 0 , 18446744073709551615 )", vec![0, u64::MAX]),
    ] {
        let text = format!("{{'descr':'<f4','fortran_order':False,'shape':{text}}}");
        assert_eq!(read(&text, 1).unwrap().shape, shape, "{text}");
    }
}

#[test]
fn numbers_of_python_2_are_read_where_it_wrote() {
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}";
    assert_eq!(read(text, 1).unwrap().shape, [3, 4]);
    assert_eq!(read(text, 2).unwrap().shape, [3, 4]);
    assert_eq!(read(text, 3).unwrap_err().rule(), "npy.shape");
}

#[test]
fn what_python_would_evaluate_is_refused() {
    let shapes = [
        ("(2)", "shape"),
        ("[2]", "shape"),
        ("(-1,)", "shape"),
        ("(+1,)", "shape"),
        ("(0x10,)", "shape"),
        ("(1_0,)", "shape"),
        ("(1.0,)", "shape"),
        ("(1e3,)", "shape"),
        ("(01,)", "shape"),
        ("('a',)", "shape"),
        ("((1,),)", "shape"),
        ("(,)", "shape"),
        ("(1 2)", "header"),
        ("(1,,2)", "shape"),
        ("(1,", "shape"),
        ("2", "shape"),
        ("(18446744073709551616,)", "overflow"),
        ("(1, # no\n2)", "shape"),
        ("None", "shape"),
    ];
    for (shape, rule) in shapes {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        assert_eq!(
            read(&text, 1).unwrap_err().rule(),
            format!("npy.{rule}"),
            "{shape}"
        );
    }
    let deep = format!("{{'shape': {}}}", "(".repeat(9000));
    assert_eq!(read(&deep, 1).unwrap_err().rule(), "npy.shape");
    let texts = [
        ("[1, 2]", "header"),
        ("", "header"),
        ("{", "header"),
        ("{'descr'", "header"),
        ("{'descr: }", "header"),
        ("{'descr': __import__('os')}", "header"),
        ("{'descr': u'<f4'}", "header"),
        ("{'descr': '<f4' '<f4'}", "header"),
        ("{'descr': [('a', '<f4')]}", "keys"),
        ("{'descr': [('a', '<f4')", "structured"),
        ("{'descr': [('a', '<f4')}", "structured"),
        ("{'descr': [('a', f())]}", "structured"),
        ("{'descr': [('a', '|O')]}", "object"),
        ("{'descr': [('a', [('b', 'O8')])]}", "object"),
        ("{'descr': ('<f4', (2,))}", "subarray"),
        ("{'fortran_order': 0}", "fortran-order"),
        ("{'fortran_order': Truest}", "fortran-order"),
        ("{'x': 1}", "keys"),
        ("{'fortran_order': True, 'fortran_order': True}", "keys"),
        ("{}", "keys"),
        ("{'descr': '\\q'}", "header"),
    ];
    for (text, rule) in texts {
        assert_eq!(
            read(text, 1).unwrap_err().rule(),
            format!("npy.{rule}"),
            "{text}"
        );
    }
    let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': ()}";
    let around = |form: &str, version| {
        read(&form.replace("{}", whole), version)
            .map(drop)
            .map_err(|error| error.rule().to_owned())
    };
    let refused = Err("npy.header".to_owned());
    for form in ["{}", " \t{}", "\n{}", "\n \n{} \n", "{}\r", "{} \r \n"] {
        assert_eq!(around(form, 1), Ok(()), "{form:?}");
        assert_eq!(around(form, 3), Ok(()), "{form:?}");
    }
    for form in ["\n {}", "\r\t{}", "{}\r ", "{}  \r\t"] {
        assert_eq!(around(form, 1), refused, "{form:?}");
        assert_eq!(around(form, 3), refused, "{form:?}");
    }
    for form in ["{}\n ", "{}\r\n  ", "{}\n\n "] {
        assert_eq!(around(form, 2), Ok(()), "{form:?}");
        assert_eq!(around(form, 3), refused, "{form:?}");
    }
    for after in ["\0", ";", " 1", "{}"] {
        assert_eq!(
            read(&format!("{whole}{after}"), 1).unwrap_err().rule(),
            "npy.header"
        );
    }
}
