//! Fetch with your own I/O: the plan says what to read, threads of your own read it, any of them decodes.

use std::sync::{Arc, Mutex, mpsc};

use zarr_array::{Array, Options, Selection};
use zarr_codec_api::{Registry, Scratch};
use zarr_store::FilesystemStore;
use zarr_store_api::{AnyStore, ReadableStore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/north_america.zarr");
    let store = Arc::new(FilesystemStore::new(path)?);
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
    let array = Array::open(AnyStore::blocking(Arc::clone(&store)), "/air_temperature", &options)?;
    let mut plan = array.plan(&Selection::all())?;
    let output = plan.output(vec![0; plan.output_len()])?;

    let (ask, asked) = mpsc::channel::<zarr_array::Request>();
    let asked = Mutex::new(asked);
    let (answer, answers) = mpsc::channel();
    std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        for _ in 0..4 {
            let (answer, asked, store) = (answer.clone(), &asked, &store);
            scope.spawn(move || {
                loop {
                    let next = asked.lock().map(|asked| asked.recv());
                    let Ok(Ok(request)) = next else { break };
                    let bytes = store.get_ranges(&request.key, &request.ranges);
                    if answer.send((request.id, bytes)).is_err() {
                        break;
                    }
                }
            });
        }
        let mut scratch = Scratch::new();
        let mut waiting = 0;
        while !plan.is_done() {
            for request in plan.next_requests(8 - waiting)? {
                waiting += 1;
                ask.send(request)?;
            }
            let (id, bytes) = answers.recv()?;
            waiting -= 1;
            for job in plan.supply(id, bytes?)? {
                job.run(&output, &mut scratch)?;
            }
        }
        drop(ask);
        Ok(())
    })?;
    let bytes = output.into_bytes();
    assert_eq!(bytes, array.read(&Selection::all())?.as_bytes().unwrap_or_default());
    println!("{} bytes, the same as Array::read gives", bytes.len());
    Ok(())
}
