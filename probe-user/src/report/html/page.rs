//! Text that goes into the page.

use std::fmt::{self, Display, Write as _};

/// Text with everything escaped that means something to HTML; files may hold anything.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            _ => f.write_char(c),
        })
    }
}

/// The page's only style; no other resource is asked for, and the policy forbids it.
pub(super) const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>joinprobe report</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1000px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.25em; margin-top: 2em; border-bottom: 1px solid #ddd }
p.about { color: #555; margin: .3em 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .8em 0 }
th, td { padding: .15em .8em; text-align: right; white-space: nowrap } th { color: #555; font-weight: 600 }
th:first-child, td:first-child { text-align: left } tr.phase td { color: #777; padding-top: 0 } tr.phase td:first-child { padding-left: 2.4em }
i { display: inline-block; width: .9em; height: .9em; margin-right: .5em; border-radius: 2px; vertical-align: -1px }
figure { margin: 1em 0 } figcaption { color: #555; font-size: .9em } svg { max-width: 100%; height: auto }
</style>
</head>
<body>
"#;
