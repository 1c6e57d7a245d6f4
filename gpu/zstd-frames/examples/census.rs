//! Makes chunks from seeds, compares this crate's decoder with libzstd on each, and counts what they were.
//! `census [count] [first seed]`.

use std::collections::BTreeMap;
use zstd_frames::generate::Generator;
use zstd_frames::{Machine, Oracle, decode, version};

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (count, first) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(0));
    let (mut generator, mut oracle) = (Generator::default(), Oracle::default());
    let mut statuses = BTreeMap::<String, u64>::new();
    let mut made = BTreeMap::<&str, (u64, u64)>::new();
    let mut faults = BTreeMap::<String, BTreeMap<String, u64>>::new();
    let (mut reached, mut lax, mut different, mut bytes, mut largest) = (0u64, 0u64, 0u64, 0usize, 0usize);
    for seed in first..first + count {
        let chunk = generator.chunk(seed);
        let told = oracle.decode(&chunk.bytes, chunk.size);
        let outcome = decode(&chunk.bytes, chunk.size, Machine::here());
        let status = outcome.result.as_ref().map_or_else(|status| format!("{status:?}"), |_| "(good)".into());
        if told.as_ref().ok() != outcome.result.as_ref().ok() {
            different += 1;
            if different <= 20 {
                let told = told.as_ref().map_or_else(|error| error.clone(), |_| "good".into());
                println!(
                    "seed {seed}: libzstd says {told}, we say {status}; {} {:?}, {} bytes to {}",
                    chunk.made_by,
                    chunk.fault,
                    chunk.bytes.len(),
                    chunk.size
                );
            }
        }
        reached += u64::from(outcome.seen.sequences > 0);
        lax += u64::from(outcome.seen.lax_ends > 0 && outcome.result.is_ok());
        bytes += chunk.bytes.len();
        largest = largest.max(chunk.size);
        let by = made.entry(chunk.made_by).or_default();
        *by = (by.0 + 1, by.1 + u64::from(outcome.result.is_ok()));
        if chunk.fault.is_some() || chunk.made_by == "structured" {
            *faults
                .entry(chunk.fault.map_or("none".into(), |fault| format!("{fault:?}")))
                .or_default()
                .entry(status.clone())
                .or_default() += 1;
        }
        *statuses.entry(status).or_default() += 1;
    }
    println!(
        "libzstd {}; {count} chunks, {} bytes each, {largest} at most decoded; {different} verdicts differ",
        version(),
        bytes as u64 / count
    );
    println!(
        "{:.1}% reach sequences, {:.2}% pass only by libzstd's laxness",
        100.0 * reached as f64 / count as f64,
        100.0 * lax as f64 / count as f64
    );
    for (name, (all, good)) in made {
        println!("{all:>9} {name} ({good} good)");
    }
    for (status, count) in statuses {
        println!("{count:>9} {status}");
    }
    for (fault, seen) in faults {
        println!("{fault:>20}: {seen:?}");
    }
}
