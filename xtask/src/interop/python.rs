//! The Python environment of the peers: found or fetched interpreter, pinned packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use super::{Result, step};

/// The versions for which every pinned package has wheels.
const MINORS: [u32; 2] = [12, 13];
/// What fetches an interpreter where the machine has none.
const UV: &str = "uv==0.13.8";

/// The interpreter of the environment of the interop peers, made where it is absent or was made from other pins.
///
/// # Errors
/// As [`environment_of`].
pub(crate) fn environment(root: &Path) -> Result<PathBuf> {
    environment_of(root, "interop-venv", "ci/interop/requirements.txt")
}

/// The interpreter of the environment `name` in `target/`, made where it is absent or was made from other pins.
///
/// # Errors
/// When there is no interpreter of a fitting version and none can be fetched, or the packages do not install.
pub(crate) fn environment_of(root: &Path, name: &str, requirements: &str) -> Result<PathBuf> {
    let venv = root.join("target").join(name);
    let python = venv.join("bin/python");
    let requirements = root.join(requirements);
    let pins = fs::read_to_string(&requirements)?;
    let stamp = venv.join("pins");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == pins) {
        return Ok(python);
    }
    if venv.exists() {
        fs::remove_dir_all(&venv)?;
    }
    make(root, &venv)?;
    step(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"])
            .arg("--requirement")
            .arg(&requirements),
    )?;
    fs::write(stamp, pins)?;
    Ok(python)
}

fn make(root: &Path, venv: &Path) -> Result<()> {
    for candidate in candidates() {
        if is_fit(&candidate) {
            return step(Command::new(&candidate).args(["-m", "venv"]).arg(venv));
        }
    }
    eprintln!("interop: no Python 3.12 or 3.13 here; asking uv for one");
    fetch(root, venv).map_err(|error| {
        format!(
            "interop needs Python 3.12 or 3.13 with its venv module: put python3.12 on PATH, or name one in \
             ZARR_INTEROP_PYTHON (none was found, and uv could not fetch one: {error})"
        )
        .into()
    })
}

fn candidates() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = env::var_os("ZARR_INTEROP_PYTHON").into_iter().map(PathBuf::from).collect();
    out.extend(MINORS.map(|minor| PathBuf::from(format!("python3.{minor}"))));
    out.push("python3".into());
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    let versions = pyenv.and_then(|p| fs::read_dir(p.join("versions")).ok());
    let mut installed: Vec<PathBuf> = versions.into_iter().flatten().flatten().map(|e| e.path().join("bin/python")).collect();
    installed.sort();
    out.extend(installed);
    out
}

/// Whether the program runs, which a shim of an absent version does not, and is of a fitting version.
fn is_fit(python: &Path) -> bool {
    let script = "import sys, venv, ensurepip; print(sys.version_info[1] if sys.version_info[0] == 3 else 0)";
    let output = Command::new(python).args(["-c", script]).stderr(Stdio::null()).output();
    output.is_ok_and(|o| {
        o.status.success() && String::from_utf8_lossy(&o.stdout).trim().parse().is_ok_and(|minor: u32| MINORS.contains(&minor))
    })
}

fn fetch(root: &Path, venv: &Path) -> Result<()> {
    let uv = if Command::new("uv").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        PathBuf::from("uv")
    } else {
        let tools = root.join("target/interop-uv");
        step(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
        step(Command::new(tools.join("bin/python")).args(["-m", "pip", "install", "--quiet", UV]))?;
        tools.join("bin/uv")
    };
    step(Command::new(uv).args(["venv", "--quiet", "--seed", "--python", "3.12"]).arg(venv))
}

/// The versions of the interpreter and of the packages that matter.
///
/// # Errors
/// When the environment does not answer.
pub(crate) fn versions(python: &Path, scripts: &Path) -> Result<BTreeMap<String, String>> {
    let output = Command::new(python).arg("-B").arg(scripts.join("peer.py")).arg("versions").output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
