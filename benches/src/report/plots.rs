//! The plots of a report, as SVG that needs nothing else.

use std::error::Error;

use plotters::{coord::Shift, prelude::*};
use storage_pipeline::CompletionMode;

use super::{
    contents::{Part, closed},
    tables::{cpu, middle},
};
use crate::{
    cpu::GROUPS,
    figures::SHARES,
    plan::CAPACITY,
    record::Results,
    workload::{Condition, Workload},
};

/// Colours that people with any kind of sight tell apart (Okabe and Ito), one a mode.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 0, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];
const SIZE: (u32, u32) = (860, 420);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;
/// A line of points for each mode.
type Lines = Vec<(CompletionMode, Vec<(f64, f64)>)>;

/// What the axes of a plot with lines say.
struct Axes {
    x: &'static str,
    y: &'static str,
    log_x: bool,
}

pub(super) fn parts(results: &Results) -> Vec<Part> {
    let inserts = closed(results, Workload::Inserts, Condition::Idle);
    let clients = |pick: &dyn Fn(f64, f64, f64) -> (f64, f64)| -> Lines {
        let at = |mode, cell| {
            let figures = results.of(cell, mode);
            let p99 = middle(&figures, |figures| figures.p99_us);
            pick(f64::from(cell.clients), middle(&figures, |figures| figures.qps), p99)
        };
        CompletionMode::ALL.map(|mode| (mode, inserts.iter().map(|cell| at(mode, cell)).collect())).to_vec()
    };
    let by_clients = clients(&|clients, qps, _| (clients, qps));
    let against = clients(&|_, qps, p99| (qps, p99));
    let axes = |x, y, log_x| Axes { x, y, log_x };
    [
        ("Throughput of uncontended inserts by the number of clients", by_clients, axes("clients", "per second", true)),
        ("99th percentile against throughput, a point for each number of clients", against, axes("per second", "p99, us", false)),
        ("Latencies of uncontended inserts, 16 clients: share of the operations that were at most as slow", shares(results), axes("us", "share", true)),
        ("99th percentile where operations arrive by a clock, against the share of the capacity that arrives", arriving(results), axes("share of capacity", "p99, us", false)),
    ]
    .into_iter()
    .filter(|(_, lines, _)| lines.iter().any(|(_, points)| points.len() > 1))
    .map(|(title, lines, axes)| plot(title, |area| draw_lines(area, &lines, &axes)))
    .chain([plot("CPU per operation by group of threads, uncontended inserts, 16 clients", |area| bars(area, results))])
    .collect()
}

fn plot(title: &str, draw: impl Fn(&Area<'_>) -> Drawn) -> Part {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn =
        area.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&area)).and_then(|()| Ok(area.present()?));
    drop(area);
    match drawn {
        Ok(()) => Part::Plot(svg, title.to_owned()),
        Err(error) => Part::Text(format!("{title}: could not be drawn: {error}")),
    }
}

/// How the latencies of each mode spread.
fn shares(results: &Results) -> Lines {
    let line = |mode| {
        let figures = results.of(&CAPACITY, mode);
        let at =
            |nth: usize| middle(&figures, |figures| figures.at_shares_us.get(nth).copied().unwrap_or(0.0));
        SHARES.iter().enumerate().map(|(nth, share)| (at(nth), *share)).collect()
    };
    CompletionMode::ALL.map(|mode| (mode, line(mode))).to_vec()
}

/// The cells whose operations arrive by a clock.
fn arriving(results: &Results) -> Lines {
    let line = |mode| {
        let cells = results.cells().into_iter().filter_map(|cell| Some((cell, cell.load?)));
        cells.map(|(cell, load)| (load, middle(&results.of(&cell, mode), |figures| figures.p99_us))).collect()
    };
    CompletionMode::ALL.map(|mode| (mode, line(mode))).to_vec()
}

fn draw_lines(area: &Area<'_>, lines: &Lines, axes: &Axes) -> Drawn {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let of = |pick: fn(&(f64, f64)) -> f64| {
        let values = points().map(pick);
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((left, right), (_, top)) = (of(|point| point.0), of(|point| point.1));
    let top = top.max(f64::MIN_POSITIVE) * 1.05;
    let mut builder = ChartBuilder::on(area);
    builder.margin(12).x_label_area_size(44).y_label_area_size(64);
    // The two kinds of axis are two types.
    macro_rules! draw {
        ($x:expr) => {{
            let mut chart = builder.build_cartesian_2d($x, 0.0..top)?;
            chart.configure_mesh().x_desc(axes.x).y_desc(axes.y).light_line_style(WHITE).draw()?;
            for ((mode, points), colour) in lines.iter().zip(COLOURS) {
                let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
                let legend = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2));
                chart.draw_series(line)?.label(mode.to_string()).legend(legend);
            }
            let mut legend = chart.configure_series_labels();
            legend.position(SeriesLabelPosition::LowerRight);
            legend.background_style(WHITE.mix(0.8)).border_style(RGBColor(190, 190, 190)).draw()?;
        }};
    }
    if axes.log_x {
        draw!((left.max(0.1) * 0.95..right.max(1.0) * 1.05).log_scale());
    } else {
        draw!(0.0..right * 1.05);
    }
    Ok(())
}

/// A bar for each mode, of a piece for each group of threads.
fn bars(area: &Area<'_>, results: &Results) -> Drawn {
    let of = |mode, group: &str| middle(&results.of(&CAPACITY, mode), |figures| cpu(figures, group)) / 1000.0;
    let height = |mode| GROUPS.iter().map(|group| of(mode, group)).sum::<f64>();
    let top = CompletionMode::ALL.map(height).into_iter().fold(1.0, f64::max) * 1.3;
    let count = CompletionMode::ALL.len() as f64;
    let mut builder = ChartBuilder::on(area);
    builder.margin(12).x_label_area_size(30).y_label_area_size(64);
    // The legend has the room of one more bar.
    let mut chart = builder.build_cartesian_2d(0.0..count + 1.0, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_desc("us per operation")
        .light_line_style(WHITE)
        .draw()?;
    for (nth, (group, colour)) in GROUPS.into_iter().zip(&COLOURS[1..]).enumerate() {
        let piece = |(at, mode): (usize, CompletionMode)| {
            let below: f64 = GROUPS[..nth].iter().map(|group| of(mode, group)).sum();
            let left = at as f64;
            Rectangle::new([(left + 0.2, below), (left + 0.8, below + of(mode, group))], colour.filled())
        };
        let pieces = CompletionMode::ALL.into_iter().enumerate().map(piece);
        let legend = move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled());
        chart.draw_series(pieces)?.label(group).legend(legend);
    }
    let names = CompletionMode::ALL.into_iter().enumerate();
    let style = ("sans-serif", 12).into_font();
    let name = |(at, mode): (usize, CompletionMode)| {
        Text::new(mode.to_string(), (at as f64 + 0.12, height(mode) + top * 0.05), style.clone())
    };
    chart.draw_series(names.map(name))?;
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(190, 190, 190))
        .draw()?;
    Ok(())
}
