//! Copying boxes between layouts: what stands between a decoded chunk and the output. Bytes are bytes copied.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zarr_buffer_api::{CopyAxis, Offsets, copy_axes};

/// Shape, strides of the destination and of the source in elements.
struct Case {
    name: &'static str,
    shape: Vec<usize>,
    destination: Vec<isize>,
    source: Vec<isize>,
}

fn cases() -> Vec<Case> {
    let case = |name, shape: &[usize], destination: &[isize], source: &[isize]| Case {
        name,
        shape: shape.to_vec(),
        destination: destination.to_vec(),
        source: source.to_vec(),
    };
    vec![
        case("contiguous", &[512, 512], &[512, 1], &[512, 1]),
        case("rows of 1 KiB", &[4, 256, 256], &[1024 * 256, 1024, 1], &[256 * 256, 256, 1]),
        case("rows of 64 elements", &[64, 64, 64], &[512 * 512, 512, 1], &[64 * 64, 64, 1]),
        case("rows of 32 elements", &[32, 32, 32], &[512 * 512, 512, 1], &[32 * 32, 32, 1]),
        case("rows of 8 elements", &[256, 128, 8], &[128 * 64, 64, 1], &[128 * 8, 8, 1]),
        case("transpose", &[512, 512], &[512, 1], &[1, 512]),
        case("every second", &[512, 512], &[512, 1], &[1024, 2]),
        case("backwards", &[512, 512], &[512, 1], &[512, -1]),
    ]
}

fn copies(criterion: &mut Criterion) {
    for item in [2usize, 4] {
        let mut group = criterion.benchmark_group(format!("{item} bytes"));
        for Case { name, shape, destination, source } in cases() {
            let reach = |strides: &[isize]| shape.iter().zip(strides).map(|(&len, &by)| (len - 1) * by.unsigned_abs()).sum::<usize>() + 1;
            let start = |strides: &[isize]| {
                shape.iter().zip(strides).filter(|(_, by)| **by < 0).map(|(&len, &by)| (len - 1) * by.unsigned_abs()).sum::<usize>()
            };
            let (from, mut to) = (vec![1u8; reach(&source) * item], vec![1u8; reach(&destination) * item]);
            let bytes = |stride: isize| Offsets::Stride(stride * item as isize);
            let axes: Vec<CopyAxis<'_>> = shape
                .iter()
                .zip(destination.iter().zip(&source))
                .map(|(&len, (&to, &from))| CopyAxis { len, destination: bytes(to), source: bytes(from) })
                .collect();
            group.throughput(Throughput::Bytes((shape.iter().product::<usize>() * item) as u64));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    copy_axes(&mut to, start(&destination) * item, black_box(&from), start(&source) * item, &axes, item).expect("fits")
                });
            });
        }
        group.finish();
    }
}

fn settings() -> Criterion {
    let short = std::time::Duration::from_millis(600);
    Criterion::default().sample_size(20).warm_up_time(short / 4).measurement_time(short).without_plots()
}

criterion_group! { name = all; config = settings(); targets = copies }
criterion_main!(all);
