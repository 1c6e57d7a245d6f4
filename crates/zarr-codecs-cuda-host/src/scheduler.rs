//! Runs the threads of a block as coroutines.

use std::cell::{Cell, RefCell};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use zarr_codecs_cuda::Launch;

const WARP: usize = 32;
/// Bytes of stack of a thread; sanitizers make frames larger.
const STACK: usize = 128 << 10;

/// `SimtThread` of `simt.cuh`.
#[repr(C)]
struct SimtThread {
    thread: u32,
    threads: u32,
    block: u32,
    blocks: u32,
    shared: *mut u8,
}

unsafe extern "C" {
    fn simt_set_thread(thread: *const SimtThread);
}

/// What the threads of one block wait for.
#[derive(Default)]
struct Block {
    /// Threads at the barrier of the block, what they brought, and the sum of the barrier before.
    arrived: u32,
    sum: u32,
    last_sum: u32,
    barriers: u32,
    warps: Vec<Warp>,
}

/// A collective: values are kept for one more round, in which slower threads still read them.
#[derive(Clone)]
struct Warp {
    arrived: usize,
    rounds: u32,
    values: [[u64; WARP]; 2],
}

/// The thread that runs.
struct Current {
    yielder: *const Yielder<(), ()>,
    block: *const RefCell<Block>,
    thread: u32,
    threads: u32,
}

thread_local! {
    static CURRENT: Cell<*const Current> = const { Cell::new(ptr::null()) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Runs `entry` once for every thread of the grid.
///
/// # Panics
/// When threads wait for others that are done: a barrier or collective that not all of them reach.
pub(crate) fn run_grid(launch: Launch, seed: u64, entry: impl Fn() + Copy) {
    assert!(launch.threads > 0 && launch.threads.is_multiple_of(WARP as u32), "{} threads are not warps", launch.threads);
    // Words, for the alignment of 16 bytes; of just the size, so that what lies behind is seen.
    let mut shared = vec![0u128; (launch.shared as usize).div_ceil(16)];
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for block in 0..launch.grid {
        // Nothing promises zeros.
        shared.fill(0xa5a5_a5a5_a5a5_a5a5_a5a5_a5a5_a5a5_a5a5);
        run_block(launch, block, shared.as_mut_ptr().cast(), &mut random, entry);
    }
}

fn run_block(launch: Launch, index: u32, shared: *mut u8, random: &mut u64, entry: impl Fn() + Copy) {
    let threads = launch.threads as usize;
    let warp = Warp { arrived: 0, rounds: 0, values: [[0; WARP]; 2] };
    let block = RefCell::new(Block { warps: vec![warp; threads / WARP], ..Block::default() });
    let contexts: Vec<SimtThread> = (0..launch.threads)
        .map(|thread| SimtThread { thread, threads: launch.threads, block: index, blocks: launch.grid, shared })
        .collect();
    let block_pointer: *const RefCell<Block> = &block;
    let mut running: Vec<Option<Coroutine<(), (), (), DefaultStack>>> = (0..launch.threads)
        .map(|thread| {
            let threads = launch.threads;
            let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a stack"));
            // It borrows what outlives the coroutine, which ends in this function.
            let body = move |yielder: &Yielder<(), ()>, ()| {
                let current = Current { yielder, block: block_pointer, thread, threads };
                CURRENT.set(&current);
                entry();
            };
            Some(spawn(stack, body))
        })
        .collect();
    let mut left = threads;
    while left > 0 {
        let before = (left, progress(&block));
        // Another order each time: from a random thread on, in random steps.
        let start = next(random) as usize % threads;
        let step = (next(random) as usize % threads) | 1;
        for turn in 0..threads {
            // An odd step visits every thread when there is a power of two of them; else each is visited in order.
            let thread = if threads.is_power_of_two() { (start + turn * step) % threads } else { (start + turn) % threads };
            let Some(coroutine) = &mut running[thread] else { continue };
            // SAFETY: the context lives to the end of this function, and is used by this thread alone.
            unsafe { simt_set_thread(&contexts[thread]) };
            if let CoroutineResult::Return(()) = coroutine.resume(()) {
                let done = running[thread].take().expect("it just ran");
                STACKS.with_borrow_mut(|stacks| stacks.push(done.into_stack()));
                left -= 1;
            }
        }
        assert!((left, progress(&block)) != before, "threads of block {index} wait for others that never come");
    }
    CURRENT.set(ptr::null());
}

/// What a coroutine runs.
type Body<'a> = Box<dyn FnOnce(&Yielder<(), ()>, ()) + 'a>;

/// Starts a coroutine whose closure borrows from the caller, who ends it.
fn spawn(stack: DefaultStack, body: impl FnOnce(&Yielder<(), ()>, ())) -> Coroutine<(), (), (), DefaultStack> {
    let body: Body<'_> = Box::new(body);
    // SAFETY: only the lifetime changes; `run_block` runs every coroutine to its end, or panics and never resumes it.
    let body: Body<'static> = unsafe { std::mem::transmute(body) };
    Coroutine::with_stack(stack, body)
}

/// How many barriers and collectives were passed, and who waits: it changes as long as anything happens.
fn progress(block: &RefCell<Block>) -> (u32, u32, usize, u64) {
    let block = block.borrow();
    let waiting = block.warps.iter().map(|warp| warp.arrived).sum();
    let rounds = block.warps.iter().map(|warp| u64::from(warp.rounds)).sum();
    (block.barriers, block.arrived, waiting, rounds)
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// The thread that calls, and its block.
fn current() -> &'static Current {
    let current = CURRENT.get();
    assert!(!current.is_null(), "called by a kernel");
    // SAFETY: it points into the stack of the coroutine that runs, which is the caller's.
    unsafe { &*current }
}

/// Lets other threads run until `done`.
fn wait_until(current: &'static Current, done: impl Fn(&Block) -> bool) {
    loop {
        // SAFETY: the block outlives its threads.
        let block = unsafe { &*current.block };
        if done(&block.borrow()) {
            return;
        }
        // SAFETY: the yielder of the coroutine that runs.
        let yielder = unsafe { &*current.yielder };
        yielder.suspend(());
        CURRENT.set(current);
    }
}

/// `__syncthreads_or`, with a sum.
#[unsafe(no_mangle)]
extern "C" fn simt_block_barrier(value: u32) -> u32 {
    let current = current();
    // SAFETY: the block outlives its threads.
    let cell = unsafe { &*current.block };
    let barrier = {
        let mut block = cell.borrow_mut();
        let barrier = block.barriers;
        block.arrived += 1;
        block.sum += value;
        if block.arrived == current.threads {
            block.last_sum = block.sum;
            block.sum = 0;
            block.arrived = 0;
            block.barriers += 1;
        }
        barrier
    };
    wait_until(current, |block| block.barriers != barrier);
    cell.borrow().last_sum
}

/// What every thread of the warp brings.
#[unsafe(no_mangle)]
unsafe extern "C" fn simt_warp_exchange(value: u64, all: *mut u64) {
    let current = current();
    let (warp, lane) = (current.thread as usize / WARP, current.thread as usize % WARP);
    // SAFETY: the block outlives its threads.
    let cell = unsafe { &*current.block };
    let round = {
        let mut block = cell.borrow_mut();
        let warp = &mut block.warps[warp];
        let round = warp.rounds;
        warp.values[round as usize % 2][lane] = value;
        warp.arrived += 1;
        if warp.arrived == WARP {
            warp.arrived = 0;
            warp.rounds += 1;
        }
        round
    };
    wait_until(current, |block| block.warps[warp].rounds != round);
    let values = cell.borrow().warps[warp].values[round as usize % 2];
    // SAFETY: the caller gives room for the values of a warp.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), all, WARP) };
}
