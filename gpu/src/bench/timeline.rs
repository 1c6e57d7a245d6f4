//! When each stage of one read ran, on the host and on the device, by one clock.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use zarr_array::{Observer, Stage};
use zarr_buffer_api::Queue;
use zarr_buffer_cuda::{CudaDevice, CudaMark, CudaQueue};

use super::Result;

/// Notes the stages of a read.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    /// The same moment on the device.
    mark: CudaMark,
    stages: Arc<Mutex<Vec<Noted>>>,
}

#[derive(Debug)]
struct Noted {
    stage: Stage,
    bytes: u64,
    when: When,
}

#[derive(Debug)]
enum When {
    Host(ThreadId, Instant, Instant),
    Device(CudaMark, CudaMark),
}

/// A stage in milliseconds since the start of the read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) stage: Stage,
    /// Which thread of the host; 0 for all of the device.
    lane: usize,
    pub(super) begin: f64,
    pub(super) end: f64,
    bytes: u64,
}

/// Ends when it is dropped.
struct Running {
    stage: Stage,
    bytes: u64,
    begin: Instant,
    queue: Option<(Arc<dyn Queue>, CudaMark)>,
    stages: Arc<Mutex<Vec<Noted>>>,
}

impl Timeline {
    pub(super) fn new(device: &Arc<CudaDevice>) -> Result<Self> {
        let queue = device.queue()?;
        queue.synchronize()?;
        let (start, mark) = (Instant::now(), queue.mark()?);
        Ok(Self { start, mark, stages: Arc::default() })
    }

    /// Milliseconds of every stage so far, on the device, too.
    pub(super) fn spans(&self) -> Result<Vec<Span>> {
        let mut lanes = BTreeMap::new();
        let since = |moment: Instant| moment.duration_since(self.start).as_secs_f64() * 1e3;
        let mut spans = Vec::new();
        for Noted { stage, bytes, when } in &*self.stages.lock().unwrap_or_else(PoisonError::into_inner) {
            let (lane, begin, end) = match when {
                When::Host(thread, begin, end) => {
                    let next = lanes.len();
                    (*lanes.entry(format!("{thread:?}")).or_insert(next), since(*begin), since(*end))
                }
                When::Device(begin, end) => (0, self.mark.milliseconds_to(begin)?, self.mark.milliseconds_to(end)?),
            };
            spans.push(Span { stage: *stage, lane, begin, end, bytes: *bytes });
        }
        spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        Ok(spans)
    }
}

impl Observer for Timeline {
    fn begin(&self, stage: Stage, bytes: u64, queue: Option<&Arc<dyn Queue>>) -> Box<dyn Any> {
        // A stage that cannot be marked is not noted, and fails by itself.
        let queue = queue.and_then(|queue| Some((Arc::clone(queue), mark(queue)?)));
        Box::new(Running { stage, bytes, begin: Instant::now(), queue, stages: Arc::clone(&self.stages) })
    }
}

fn mark(queue: &Arc<dyn Queue>) -> Option<CudaMark> {
    queue.as_any().downcast_ref::<CudaQueue>()?.mark().ok()
}

impl Drop for Running {
    fn drop(&mut self) {
        let when = match self.queue.take() {
            None => When::Host(std::thread::current().id(), self.begin, Instant::now()),
            Some((queue, begin)) => match mark(&queue) {
                Some(end) => When::Device(begin, end),
                None => return,
            },
        };
        let noted = Noted { stage: self.stage, bytes: self.bytes, when };
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }
}

/// Milliseconds in which at least one span of a stage ran.
pub(super) fn busy(spans: &[Span], stage: Stage) -> f64 {
    union(spans.iter().filter(|span| span.stage == stage).map(|span| (span.begin, span.end)))
}

/// Milliseconds in which spans of both stages ran.
pub(super) fn both(spans: &[Span], a: Stage, b: Stage) -> f64 {
    let either = union(spans.iter().filter(|span| span.stage == a || span.stage == b).map(|span| (span.begin, span.end)));
    busy(spans, a) + busy(spans, b) - either
}

fn union(spans: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut spans: Vec<(f64, f64)> = spans.collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut until) = (0.0, f64::NEG_INFINITY);
    for (begin, end) in spans {
        sum += (end - begin.max(until)).max(0.0);
        until = until.max(end);
    }
    sum
}

/// One line of JSON: `[stage, lane, begin, end, bytes]` for each span, times in microseconds.
pub(super) fn json(row: &str, about: &str, spans: &[Span]) -> String {
    let list: Vec<String> = spans
        .iter()
        .map(|span| format!(r#"["{}",{},{:.0},{:.0},{}]"#, span.stage, span.lane, span.begin * 1e3, span.end * 1e3, span.bytes))
        .collect();
    format!(r#"{{"row":"{row}",{about},"spans":[{}]}}"#, list.join(","))
}

/// Draws the spans of some rows below each other.
pub(super) fn draw(rows: &[(String, Vec<Span>)], path: &Path) -> Result<()> {
    const WIDTH: f64 = 1000.0;
    const LANE: f64 = 9.0;
    let last = rows.iter().flat_map(|(_, spans)| spans).map(|span| span.end).fold(1.0, f64::max);
    let scale = WIDTH / last;
    let mut body = String::new();
    let mut top = 20.0;
    for (name, spans) in rows {
        let threads = spans.iter().map(|span| span.lane + 1).max().unwrap_or(1);
        writeln!(body, r#"<text x="4" y="{:.0}" font-weight="bold">{name}</text>"#, top + 10.0)?;
        top += 16.0;
        for (stage, colour) in STAGES {
            let on_host = matches!(stage, Stage::Plan | Stage::Fetch);
            let of_stage = spans.iter().filter(|span| span.stage == stage);
            let mut path = String::new();
            for span in of_stage {
                let y = top + LANE * (span.lane as f64 + 0.5);
                write!(path, "M{:.1} {y:.0}h{:.1}", LEFT + span.begin * scale, ((span.end - span.begin) * scale).max(0.3))?;
            }
            if !path.is_empty() {
                writeln!(body, r#"<path d="{path}" stroke="{colour}" stroke-width="{:.0}"/>"#, LANE - 2.0)?;
                if stage != Stage::Plan {
                    writeln!(body, r#"<text x="4" y="{:.0}">{stage}</text>"#, top + LANE)?;
                }
            }
            if stage == Stage::Fetch || !on_host {
                top += if on_host { LANE * threads as f64 + 3.0 } else { LANE + 3.0 };
            }
        }
        top += 8.0;
    }
    let mut axis = String::new();
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0].into_iter().find(|step| last / step <= 20.0).unwrap_or(200.0);
    let mut at = 0.0;
    while at <= last {
        let x = LEFT + at * scale;
        writeln!(axis, r##"<path d="M{x:.1} 14V{top:.0}" stroke="#ddd"/><text x="{x:.1}" y="11" text-anchor="middle">{at} ms</text>"##)?;
        at += step;
    }
    let all = LEFT + WIDTH + 20.0;
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all:.0} {top:.0}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{axis}{body}</svg>\n"
    );
    Ok(std::fs::write(path, svg)?)
}

const LEFT: f64 = 60.0;

const STAGES: [(Stage, &str); 5] =
    [(Stage::Plan, "#bbb"), (Stage::Fetch, "#4477aa"), (Stage::Upload, "#228833"), (Stage::Decode, "#ee6677"), (Stage::Scatter, "#aa3377")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_count_once() {
        let span = |stage, begin, end| Span { stage, lane: 0, begin, end, bytes: 1 };
        let spans =
            [span(Stage::Fetch, 0.0, 2.0), span(Stage::Fetch, 1.0, 3.0), span(Stage::Fetch, 4.0, 5.0), span(Stage::Decode, 2.0, 4.5)];
        assert!((busy(&spans, Stage::Fetch) - 4.0).abs() < 1e-9);
        assert!((both(&spans, Stage::Fetch, Stage::Decode) - 1.5).abs() < 1e-9);
        assert!(json("x", r#""a":1"#, &spans).starts_with(r#"{"row":"x","a":1,"spans":[["fetch",0,0,2000,1]"#));
    }
}
