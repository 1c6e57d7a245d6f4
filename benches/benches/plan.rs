//! Planning, without I/O and without decoding: making a plan, asking it for every request, and decoding the index of a shard.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use zarr::store::MemoryStore;
use zarr::{Array, ArrayBuilder, DataType, Selection};

fn array(chunks: [u64; 3], shards: Option<[u64; 3]>, fill: bool) -> Array {
    let mut builder = ArrayBuilder::new([256, 256, 256], DataType::UInt16).chunks(chunks);
    if let Some(shards) = shards {
        builder = builder.shards(shards);
    }
    let array = builder.create(MemoryStore::new(), "/", &zarr::options()).expect("creates");
    if fill {
        let data: Vec<u8> = (0..2 * 256 * 256 * 256u64).map(|index| (index / 3) as u8).collect();
        array.write(&Selection::all(), &data).expect("writes");
    }
    array
}

fn plans(criterion: &mut Criterion) {
    let everything = Selection::all();
    let part = Selection::ranges([10..100, 20..180, 5..205]);
    let one = Selection::ranges([32..64, 64..96, 0..32]);
    let mut group = criterion.benchmark_group("plan and requests");
    for (name, chunks) in [("chunks of 32", [32, 32, 32]), ("chunks of 128", [128, 128, 128])] {
        let array = array(chunks, None, false);
        for (what, selection) in [("all", &everything), ("box", &part), ("one", &one)] {
            let count = array.plan(selection).and_then(|mut plan| plan.next_requests(usize::MAX)).expect("plans").len();
            group.throughput(Throughput::Elements(count as u64));
            group.bench_with_input(BenchmarkId::new(name, what), selection, |bencher, selection| {
                bencher.iter(|| {
                    let mut plan = array.plan(black_box(selection)).expect("plans");
                    plan.next_requests(usize::MAX).expect("requests")
                });
            });
        }
    }
    group.finish();

    let sharded = array([32, 32, 32], Some([256, 256, 256]), true);
    let shard = sharded.read_encoded_chunk(&[0, 0, 0]).expect("reads").expect("is there");
    let mut group = criterion.benchmark_group("shard index of 512 entries, and requests");
    for (what, selection) in [("all", &everything), ("box", &part), ("one", &one)] {
        group.bench_function(what, |bencher| {
            bencher.iter(|| {
                let mut plan = sharded.plan(black_box(selection)).expect("plans");
                for request in plan.next_requests(1).expect("asks for the index") {
                    let pieces = request.ranges.iter().map(|range| {
                        let range = range.resolve(shard.len() as u64).expect("inside the shard");
                        shard.slice(range.start as usize..range.end as usize)
                    });
                    plan.supply(request.id, Some(pieces.collect())).expect("a good index");
                }
                plan.next_requests(usize::MAX).expect("requests")
            });
        });
    }
    group.finish();
}

fn settings() -> Criterion {
    let short = std::time::Duration::from_millis(800);
    Criterion::default().sample_size(20).warm_up_time(short / 4).measurement_time(short).without_plots()
}

criterion_group! { name = all; config = settings(); targets = plans }
criterion_main!(all);
