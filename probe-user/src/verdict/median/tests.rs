use super::*;

/// A sequence about a limit of 100 ms: `#` above it by little, `.` within it by little.
fn decided(pattern: &str) -> (bool, bool) {
    let samples: Vec<u32> = pattern
        .chars()
        .map(|c| if c == '#' { 110_000 } else { 95_000 })
        .collect();
    let bounds = Median::of(Samples::Ordered(&samples), &Policy::default())
        .unwrap()
        .bounds;
    (
        bounds.lower.is_some_and(|lower| lower > 100_000),
        bounds.upper.is_some_and(|upper| upper <= 100_000),
    )
}

#[test]
fn fifteen_samples_decide_as_the_documentation_says() {
    for (pattern, beyond, within) in [
        ("###############", true, false),
        ("#######.#######", true, false),
        ("##############.", false, false),
        (".##############", false, false),
        ("####.#####.####", false, false),
        ("...............", false, true),
        ("..............#", false, true),
        (".......#.......", false, true),
        ("....#.....#....", false, true),
        ("#.....#........", false, true),
        ("......##.......", false, false),
        ("...#...#...#...", false, false),
    ] {
        assert_eq!(decided(pattern), (beyond, within), "{pattern}");
    }
}

#[test]
fn it_takes_eleven_to_fail_and_six_to_pass() {
    for (n, beyond) in [(10, false), (11, true)] {
        assert_eq!(decided(&"#".repeat(n)), (beyond, false));
    }
    for (n, within) in [(5, false), (6, true)] {
        assert_eq!(decided(&".".repeat(n)), (false, within));
    }
}

#[test]
fn samples_in_runs_are_worth_less() {
    let split = |pattern: [u32; 8]| Samples::Ordered(&pattern).against(100);
    let mixed = split([90, 110, 90, 110, 90, 110, 90, 110]);
    assert_eq!(mixed, Split { above: 4, worth: 8 });
    // One crossing where four are usual: r = 0.75, so n x 0.25 / 1.75.
    let runs = split([90, 90, 90, 90, 110, 110, 110, 110]);
    assert_eq!(runs, Split { above: 4, worth: 1 });
}
