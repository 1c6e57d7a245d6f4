//! The laws of several at work on a store at once.

use zarr_store_api::{ByteRange, Bytes};

use super::face::{Face, Job, Op, show};
use super::fixture::{fixture, key};
use super::{StoreCase, on_empty, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("read/concurrent", "many may read at once, and each reads what it asked for", readers),
        on_empty("write/atomic", "readers see one value or another while writers replace it, never a mixture, nor none", atomic),
        on_empty("write/concurrent", "many may write different keys at once, and every write stays", writers),
        on_empty("write/coming-and-going", "keys may come and go at once below prefixes that come and go with them", coming_and_going),
    ]
}

fn readers(store: &Face) -> Result<(), Broken> {
    let values: Vec<_> = fixture().into_iter().filter(|(_, value)| (20..=1000).contains(&value.len())).collect();
    let jobs = (0..8).map(|reader| -> Job {
        let values = values.clone();
        Box::new(move |step| {
            let (key, value) = values[(reader + step) % values.len()].clone();
            Op::Get(key, Box::new(move |read| read.as_ref() == Some(&value)))
        })
    });
    store.run(jobs.collect(), 25)
}

/// A value of which every byte tells which writer it is from.
pub(super) fn uniform(writer: usize, step: usize) -> Bytes {
    let length = 10_000 + 7 * writer + 1000 * (step % 5);
    Bytes::from(vec![writer as u8 + 1; length])
}

pub(super) fn is_uniform(value: &Bytes) -> bool {
    let Some(first) = value.first() else { return false };
    let Some(writer) = usize::from(*first).checked_sub(1) else { return false };
    value.iter().all(|byte| byte == first) && (0..5).any(|step| uniform(writer, step).len() == value.len())
}

fn atomic(store: &Face) -> Result<(), Broken> {
    let target = key("a/contested");
    store.set(&target, uniform(0, 0))?;
    let writers = (0..4).map(|writer| -> Job {
        let target = target.clone();
        Box::new(move |step| match step % 2 {
            0 => Op::Set(target.clone(), uniform(writer, step)),
            _ => Op::SetVectored(target.clone(), uniform(writer, step).chunks(999).map(Bytes::copy_from_slice).collect()),
        })
    });
    let readers = (0..4).map(|_| -> Job {
        let target = target.clone();
        Box::new(move |_| Op::Get(target.clone(), Box::new(|read| read.as_ref().is_some_and(is_uniform))))
    });
    store.run(writers.chain(readers).collect(), 40)?;
    let left = store.get(&target, ByteRange::All)?;
    ensure!(left.as_ref().is_some_and(is_uniform), "what is left is a mixture: {}", show(&left));
    Ok(())
}

fn writers(store: &Face) -> Result<(), Broken> {
    let jobs = (0..6).map(|writer| -> Job { Box::new(move |step| Op::Set(key(&format!("kept/{step}/{writer}")), uniform(writer, step))) });
    store.run(jobs.collect(), 10)?;
    for writer in 0..6 {
        for step in 0..10 {
            let read = store.get(&key(&format!("kept/{step}/{writer}")), ByteRange::All)?;
            ensure!(read.as_ref() == Some(&uniform(writer, step)), "`kept/{step}/{writer}` reads {}", show(&read));
        }
    }
    Ok(())
}

fn coming_and_going(store: &Face) -> Result<(), Broken> {
    let jobs = (0..6).map(|writer| -> Job {
        Box::new(move |step| {
            let key = key(&format!("shared/{}/{writer}", step / 2 % 3));
            match step % 2 {
                0 => Op::Set(key, uniform(writer, step)),
                _ => Op::Erase(key),
            }
        })
    });
    store.run(jobs.collect(), 30)?;
    for writer in 0..6 {
        for part in 0..3 {
            let read = store.get(&key(&format!("shared/{part}/{writer}")), ByteRange::All)?;
            ensure!(read.is_none(), "erased at last, `shared/{part}/{writer}` reads {}", show(&read));
        }
    }
    Ok(())
}
