//! The pinned CUDA compiler: installed into `target/` from PyPI, driven by `compile.py`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::FLAGS;
use crate::Result;
use crate::tool::output;

/// The compiler, its headers, and what packs its output, with the hashes of their wheels for x86-64 Linux.
pub(super) const PINS: &str = "\
nvidia-cuda-nvrtc-cu12==12.9.86 --hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-runtime-cu12==12.9.79 --hash=sha256:25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
nvidia-nvfatbin-cu12==12.9.82 --hash=sha256:16cbfbd12287508212f22f42dff6ff51cf9b528b906f57f615b080da16dea1ea
";

/// How the compiler is called: part of what a lock covers.
pub(super) const SCRIPT: &str = include_str!("compile.py");

/// An installed compiler.
pub(super) struct Compiler {
    home: PathBuf,
}

impl Compiler {
    /// Installs the compiler in `target/cuda-compiler`, unless these pins are there already.
    ///
    /// # Errors
    /// When there is no Python with pip, or a wheel does not come or is another one.
    pub(super) fn install(root: &Path) -> Result<Self> {
        let home = root.join("target/cuda-compiler");
        let stamp = home.join("pins");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == PINS) {
            return Ok(Self { home });
        }
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        let requirements = home.join("requirements.txt");
        fs::write(&requirements, PINS)?;
        eprintln!("kernels: installing the compiler");
        output(
            python()
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"])
                .args(["--require-hashes", "--no-compile", "--target"])
                .arg(&home)
                .arg("--requirement")
                .arg(&requirements),
        )?;
        fs::write(stamp, PINS)?;
        Ok(Self { home })
    }

    /// Compiles `folder/name.cu` for one architecture, and gives the compiler's log.
    ///
    /// # Errors
    /// What the compiler says about the source.
    pub(super) fn compile(&self, folder: &Path, name: &str, arch: &str, image: &Path) -> Result<String> {
        let kind = if arch.starts_with("sm_") { "cubin" } else { "ptx" };
        // Names relative to the sources keep this machine's paths out of the code.
        let mut command = python();
        command.current_dir(folder).env("CUDA_COMPILER", &self.home);
        command.args(["-B", "-c", SCRIPT, kind, arch]).arg(format!("{name}.cu")).arg(image).args(FLAGS);
        let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        let log = String::from_utf8_lossy(&done.stdout).into_owned();
        if done.status.success() {
            let said: Vec<&str> = log.lines().filter(|line| !line.starts_with("ptxas ")).collect();
            if !said.is_empty() {
                eprintln!("{}", said.join("\n"));
            }
            Ok(log)
        } else {
            // One slip in a header makes a hundred errors; the first ones tell.
            let first: Vec<&str> = log.lines().take(60).collect();
            Err(format!("{name} for {arch}:\n{}\n{}", first.join("\n"), String::from_utf8_lossy(&done.stderr)).into())
        }
    }

    /// Packs images for several architectures into one compressed fatbin.
    ///
    /// # Errors
    /// What the packer says.
    pub(super) fn bundle(&self, name: &str, fatbin: &Path, images: &[(String, PathBuf)]) -> Result<()> {
        let mut command = python();
        command.env("CUDA_COMPILER", &self.home).args(["-B", "-c", SCRIPT, "bundle", name]).arg(fatbin);
        command.args(images.iter().map(|(arch, path)| format!("{arch}={}", path.display())));
        output(&mut command).map(drop)
    }
}

/// Any Python 3 with pip.
fn python() -> Command {
    Command::new(env::var_os("PYTHON").unwrap_or_else(|| "python3".into()))
}
