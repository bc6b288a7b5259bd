//! One chart as inline SVG: lines in a frame, nothing of whose text comes from a file.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::report::error::ReportError;
use crate::report::text::duration;

const SIZE: (u32, u32) = (960, 340);
/// From here on a linear axis would flatten what is small.
const LOGARITHMIC_FROM: f64 = 20.0;

/// Colours that stay apart for most colour-blind readers; reused where there are more lines.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 94, 240),
    RGBColor(90, 90, 90),
];

/// A line: points of x and microseconds.
pub(super) struct Line {
    /// Which colour; lines of one target share it.
    pub(super) color: usize,
    /// Drawn thin, for the upper of two lines of one target.
    pub(super) thin: bool,
    pub(super) points: Vec<(f64, f64)>,
}

/// How the x axis reads.
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) range: Range<f64>,
    /// Ticks, about.
    pub(super) ticks: usize,
    pub(super) label: fn(f64, &Range<f64>) -> String,
}

/// The colour of lines number `index`, as CSS.
pub(super) fn css(index: usize) -> String {
    let RGBColor(r, g, b) = color(index);
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn color(index: usize) -> RGBColor {
    COLORS[index % COLORS.len()]
}

/// Draws `lines` over `axis`.
///
/// # Errors
/// The drawing library refuses; it writes to memory and has no reason to.
pub(super) fn draw(axis: &Axis, lines: &[Line]) -> Result<String, ReportError> {
    let values = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|&(_, micros)| micros.max(1.0))
    };
    let high = values().fold(1.0, f64::max) * 1.1;
    let low = values().fold(high, f64::min);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = if high / low > LOGARITHMIC_FROM {
            frame(&area, axis, lines, (low * 0.8..high).log_scale())
        } else {
            frame(&area, axis, lines, 0.0..high)
        };
        drawn.map_err(|error| ReportError::Plot(error.to_string()))?;
    }
    Ok(svg)
}

fn frame<Y>(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    axis: &Axis,
    lines: &[Line],
    y: Y,
) -> Result<(), Box<dyn Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(axis.range.clone(), y)?;
    chart
        .configure_mesh()
        .x_desc(axis.title)
        .x_labels(axis.ticks)
        .y_labels(8)
        .x_label_formatter(&|x| (axis.label)(*x, &axis.range))
        .y_label_formatter(&|&micros| label_of(micros))
        .light_line_style(RGBColor(244, 244, 244))
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 13))
        .draw()?;
    for line in lines {
        let color = color(line.color);
        let style = ShapeStyle {
            color: color.mix(if line.thin { 0.55 } else { 1.0 }),
            filled: false,
            stroke_width: if line.thin { 1 } else { 2 },
        };
        let points = || line.points.iter().map(|&(x, y)| (x, y.max(1.0)));
        chart.draw_series(LineSeries::new(points(), style))?;
        // A lone interval is no line.
        if line.points.len() == 1 {
            chart.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
        }
    }
    area.present()?;
    Ok(())
}

fn label_of(micros: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an axis of positive values below 2^27"
    )]
    duration(micros.max(0.0).round() as u64)
}
