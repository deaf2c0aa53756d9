use super::*;

fn indices(text: &str, dim: u64) -> Vec<u64> {
    let selection = Selection::new(&Slice::parse(text).unwrap(), &[dim]).unwrap();
    let axis = &selection.axes[0];
    let found: Vec<u64> = (0..axis.count()).map(|place| axis.at(place).0).collect();
    for index in 0..dim {
        let place = found.iter().position(|&other| other == index);
        assert_eq!(axis.place_of(index), place.map(|place| place as u64));
    }
    found
}

#[test]
fn ranges_are_those_of_python() {
    // Each checked with `list(range(10))[...]`.
    assert_eq!(indices(":", 4), [0, 1, 2, 3]);
    assert_eq!(indices("2:5", 10), [2, 3, 4]);
    assert_eq!(indices("-3:", 10), [7, 8, 9]);
    assert_eq!(indices(":-8", 10), [0, 1]);
    assert_eq!(indices("::3", 10), [0, 3, 6, 9]);
    assert_eq!(indices("::-4", 10), [9, 5, 1]);
    assert_eq!(indices("7:2:-2", 10), [7, 5, 3]);
    assert_eq!(indices("20:2:-3", 10), [9, 6, 3]);
    assert_eq!(indices("-20:3", 10), [0, 1, 2]);
    assert_eq!(indices("5:5", 10), [0u64; 0]);
    assert_eq!(indices("8:100", 10), [8, 9]);
    assert_eq!(indices("100:", 10), [0u64; 0]);
    assert_eq!(indices("3:-20:-1", 10), [3, 2, 1, 0]);
    assert_eq!(indices("-20::-1", 10), [0u64; 0]);
    assert_eq!(indices("::9223372036854775807", 10), [0]);
    assert_eq!(indices("::-9223372036854775808", 10), [9]);
    assert_eq!(indices("-1", 10), [9]);
    assert_eq!(indices(":", 0), [0u64; 0]);
    assert_eq!(indices("::-1", 0), [0u64; 0]);
}

#[test]
fn an_ellipsis_stands_for_the_dimensions_that_are_not_named() {
    let shape = |text: &str| {
        let slices = Slice::parse(text)?;
        Selection::new(&slices, &[2, 3, 4, 5]).map(|selection| selection.shape())
    };
    assert_eq!(shape("0:1, ..., -1").unwrap(), [1, 3, 4]);
    assert_eq!(shape("[...]").unwrap(), [2, 3, 4, 5]);
    assert_eq!(shape("").unwrap(), [2, 3, 4, 5]);
    assert_eq!(shape("1,").unwrap(), [3, 4, 5]);
    assert_eq!(shape("1, 2, 3, 4").unwrap(), [0u64; 0]);
    assert_eq!(shape("1, 2, ..., 3, 4").unwrap(), [0u64; 0]);
    for wrong in ["..., ...", "0,0,0,0,0", "0,0,3:,...,0,0", "2", "-3"] {
        assert!(shape(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_no_slice_is_refused() {
    for wrong in [
        "a", "1:2:3:4", "::0", "1,,2", "1 2", "..", "1:b", "1.5", ",",
    ] {
        let error = Slice::parse(wrong).unwrap_err();
        assert!(error.message().contains("slice"), "{wrong}: {error}");
    }
}

#[test]
fn edges_keep_both_ends() {
    let slices = Slice::parse("::-2, :, 5").unwrap();
    let selection = Selection::new(&slices, &[100, 4, 9]).unwrap().edges(2);
    assert_eq!(selection.shape(), [4, 4]);
    let axis = &selection.axes[0];
    let found: Vec<u64> = (0..4).map(|place| axis.at(place).0).collect();
    assert_eq!(found, [99, 97, 3, 1]);
}

#[test]
fn slices_are_shown_as_they_are_read() {
    for text in ["...", "-3", ":", "1:", ":-1", "::2", "5:1:-2"] {
        assert_eq!(Slice::parse(text).unwrap()[0].to_string(), text);
    }
}
