//! `zarr devices`

use zarr::codec_api::Placement;
use zarr::meta::Json;

use crate::context::Context;
use crate::device::{self, Found};
use crate::error::Result;
use crate::table::{Align, DIM, RED, Table};
use crate::{json, units};

/// Show what can decode on this machine, and which codecs run on it
///
/// A machine without an NVIDIA driver has the CPU alone, and this says so. What a device lacks runs on the CPU first: `zarr read` shows what ran where.
#[derive(Debug, clap::Args)]
pub(crate) struct DevicesArgs {}

pub(crate) fn run(_: &DevicesArgs, context: &Context) -> Result<()> {
    let on_cpu = cpu_codecs(context);
    let found = device::all();
    if context.json {
        let cpu = json::object().with("device", "cpu").with("threads", context.threads).with("codecs", names(&on_cpu));
        let devices = found.as_ref().map(Vec::as_slice).unwrap_or_default().iter().map(to_json);
        let object = json::object()
            .with("devices", std::iter::once(cpu).chain(devices).map(Json::from).collect::<Json>())
            .with("cuda_error", json::optional(found.as_ref().err().map(|failure| failure.line())));
        return context.print_json(object);
    }
    let mut table = Table::new([
        ("device", Align::Left),
        ("name", Align::Left),
        ("memory", Align::Right),
        ("capability", Align::Right),
        ("processors", Align::Right),
        ("driver", Align::Left),
    ]);
    table.row(["cpu", &units::count(context.threads as u64, "thread"), "", "", "", ""]);
    let mut codecs = Table::new([("", Align::Left), ("", Align::Left)]);
    codecs.styled_row([("cpu".to_owned(), DIM), (on_cpu.join(" "), anstyle::Style::new())]);
    let mut note = String::new();
    match &found {
        Err(failure) => note = format!("{DIM}no CUDA device: {}{DIM:#}\n", failure.line()),
        Ok(found) if found.is_empty() => note = format!("{DIM}no CUDA device: the driver finds none{DIM:#}\n"),
        Ok(found) => {
            for device in found {
                table.row([
                    device.id.clone(),
                    device.name.clone(),
                    units::bytes(device.memory),
                    device.capability.clone(),
                    device.multiprocessors.to_string(),
                    format!("CUDA {}", device.driver),
                ]);
                codecs.styled_row(match &device.codecs {
                    Ok(names) => [(device.id.clone(), DIM), (names.join(" "), anstyle::Style::new())],
                    Err(failure) => [(device.id.clone(), DIM), (format!("cannot be used: {}", failure.line()), RED)],
                });
            }
        }
    }
    context.print(&format!("{}{note}\ncodecs\n{}", table.render(), codecs.render()))
}

fn cpu_codecs(context: &Context) -> Vec<String> {
    let registry = context.options().registry;
    let host = registry.providers().filter(|provider| provider.placement() == Placement::Host);
    let mut names: Vec<String> = host.flat_map(|provider| provider.codecs()).collect();
    names.sort();
    names.dedup();
    names
}

fn names(names: &[String]) -> Json {
    names.iter().map(|name| Json::from(name.as_str())).collect()
}

fn to_json(device: &Found) -> zarr::meta::JsonObject {
    let object = json::object()
        .with("device", device.id.as_str())
        .with("name", device.name.as_str())
        .with("uuid", device.uuid.as_str())
        .with("memory_bytes", device.memory)
        .with("compute_capability", device.capability.as_str())
        .with("multiprocessors", u64::from(device.multiprocessors))
        .with("driver_cuda", device.driver.as_str());
    match &device.codecs {
        Ok(codecs) => object.with("codecs", names(codecs)),
        Err(failure) => object.with("error", failure.line()),
    }
}
