//! `--html`: one page that needs nothing but itself.

mod chart;
mod page;
mod series;

use std::fmt::Write as _;

use self::page::Escaped;
use super::error::ReportError;
use super::merge::{Group, Merged, Sum};
use super::record::{Place, Values};
use super::text::{Origin, duration, name};
use crate::output::Timestamp;

/// The page.
///
/// # Errors
/// The drawing library refuses.
pub(super) fn page(merged: &Merged, origin: &Origin) -> Result<String, ReportError> {
    let mut html = page::HEAD.to_owned();
    head(&mut html, merged, origin);
    for values in Values::all() {
        let groups: Vec<(&Place, &Group)> = merged
            .groups
            .iter()
            .filter(|(place, _)| place.values == values)
            .collect();
        if !groups.is_empty() {
            section(&mut html, &groups, merged)?;
        }
    }
    html.push_str("</body>\n</html>\n");
    Ok(html)
}

fn head(html: &mut String, merged: &Merged, origin: &Origin) {
    let nodes: Vec<&str> = merged.nodes.iter().map(String::as_str).collect();
    put(
        html,
        format_args!(
            "<h1>TCP latency seen by {}</h1>\n",
            Escaped(&nodes.join(", "))
        ),
    );
    if let Some((start, end)) = merged.span {
        put(
            html,
            format_args!(
                "<p class=\"about\">{} to {}</p>\n",
                Timestamp(start),
                Timestamp(end)
            ),
        );
    }
    for verdict in &origin.verdicts {
        put(
            html,
            format_args!(
                "<p class=\"about\">Verdict of {} at {}: <b>{}</b> {}</p>\n",
                Escaped(&verdict.node),
                Escaped(&verdict.time),
                Escaped(&verdict.verdict),
                Escaped(&verdict.reason)
            ),
        );
    }
    for sentence in &origin.advice {
        put(
            html,
            format_args!("<p class=\"about\">{}</p>\n", Escaped(sentence)),
        );
    }
}

fn section(
    html: &mut String,
    groups: &[(&Place, &Group)],
    merged: &Merged,
) -> Result<(), ReportError> {
    let Some((first, _)) = groups.first() else {
        return Ok(());
    };
    put(
        html,
        format_args!(
            "<h2>{}</h2>\n<p class=\"about\">{}</p>\n<table>\n<tr><th></th><th>n</th><th>min</th><th>p50</th>\
             <th>p90</th><th>p99</th><th>max</th></tr>\n",
            first.values.name(),
            Escaped(first.values.meaning())
        ),
    );
    for (index, (place, group)) in groups.iter().enumerate() {
        let swatch = format!("<i style=\"background:{}\"></i>", chart::css(index));
        row(
            html,
            "",
            &format!("{swatch}{}", Escaped(&name(place, merged.is_by_process()))),
            &group.total,
        );
        for (phase, sum) in &group.phases {
            row(
                html,
                " class=\"phase\"",
                &format!("phase {}", Escaped(phase)),
                sum,
            );
        }
    }
    html.push_str("</table>\n");
    let drawn = || {
        groups
            .iter()
            .enumerate()
            .filter(|(_, (_, group))| !group.total.distribution.is_empty())
    };
    if drawn().next().is_none() {
        return Ok(());
    }
    let axis = series::percentile_axis(groups.iter().map(|(_, group)| *group));
    let lines: Vec<_> = drawn()
        .map(|(index, (_, group))| series::percentiles(index, &group.total.distribution, &axis))
        .collect();
    figure(
        html,
        &chart::draw(&axis, &lines)?,
        "Percentiles of all samples",
    );
    if let Some(span) = merged.span {
        let axis = series::time_axis(span);
        let lines: Vec<_> = drawn()
            .flat_map(|(index, (_, group))| series::over_time(index, group))
            .collect();
        figure(
            html,
            &chart::draw(&axis, &lines)?,
            "Over time: the median of each interval (bold) and its 99th percentile (thin). Where there are more than \
             400 intervals, neighbours are put together: the middle median and the highest 99th percentile.",
        );
    }
    Ok(())
}

fn row(html: &mut String, class: &str, name: &str, sum: &Sum) {
    let quantile = |quantile| sum.quantile(quantile).map_or("-".to_owned(), duration);
    let (min, max) = sum.extremes().unwrap_or_default();
    put(
        html,
        format_args!(
            "<tr{class}><td>{name}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            sum.count(),
            duration(min),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            duration(max)
        ),
    );
}

fn figure(html: &mut String, svg: &str, caption: &str) {
    put(
        html,
        format_args!("<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n"),
    );
}

/// Writing to a string cannot fail.
fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = html.write_fmt(text);
}
