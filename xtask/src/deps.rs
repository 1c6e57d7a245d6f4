//! `cargo xtask check-deps`: who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::Result;
use crate::tool::{cargo, output};

/// The contract crates.
pub(crate) const CONTRACTS: [&str; 4] = ["zarr-meta", "zarr-buffer-api", "zarr-codec-api", "zarr-store-api"];

/// The most crates from outside that a contract crate names.
const DIRECT: usize = 4;
/// The most crates from outside that end up in the program of who uses a contract crate; proc macros do not.
const LINKED: usize = 6;
/// What no contract crate may bring along.
const NOT_IN_CONTRACTS: [&str; 4] = ["tokio", "rayon", "serde_json", "object_store"];
/// The CUDA driver's bindings.
const CUDA: &str = "cudarc";
/// The crates for CUDA: contracts and each other is all that they name of this workspace, and the laws in their tests, so that they could as well live
/// elsewhere.
pub(crate) const CUDA_CRATES: [&str; 3] = ["zarr-buffer-cuda", "zarr-codecs-cuda", "zarr-codecs-cuda-host"];
/// The face that takes CUDA by default, and the feature of both faces that brings it.
const CUDA_FACE: &str = "zarr-cli";
const CUDA_FEATURE: &str = "cuda";
/// The laws for providers.
pub(crate) const LAWS: &str = "zarr-conformance";
/// Their features that bring other crates: the program, the libraries it compares with, what others are compared with, and the layout of DLPack.
const LAWS_PROVIDERS: [&str; 4] = ["runner", "peers", "reference", "dlpack"];

/// The crates of this workspace that each of them may name outside of its tests. Faces may name any.
const MAY_NAME: [(&str, &[&str]); 9] = [
    ("zarr-meta", &[]),
    ("zarr-buffer-api", &[]),
    ("zarr-store-api", &["zarr-buffer-api"]),
    ("zarr-codec-api", &["zarr-meta", "zarr-buffer-api"]),
    ("zarr-store", &["zarr-store-api", "zarr-buffer-api"]),
    ("zarr-codecs-cpu", &["zarr-meta", "zarr-buffer-api", "zarr-codec-api"]),
    ("zarr-array", &CONTRACTS),
    ("zarr-conformance", &CONTRACTS),
    ("zarr-buffer-dlpack", &["zarr-meta", "zarr-buffer-api"]),
];

/// The crates whose job is to put the others together; so may those that are never published.
const FACES: [&str; 2] = ["zarr", "zarr-cli"];

/// The codec whose format contains other codecs: it pulls exactly their libraries.
const CONTAINER: (&str, &[&str]) = ("blosc", &["blosc-src", "libdeflate-sys", "lz4-sys", "snap", "zstd"]);

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    features: BTreeMap<String, Vec<String>>,
    /// Where the crate may be published: `None` anywhere, empty nowhere.
    publish: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    optional: bool,
}

impl Package {
    /// Whether the crate is never published.
    fn is_private(&self) -> bool {
        self.publish.as_ref().is_some_and(Vec::is_empty)
    }

    /// What the crate names outside of its tests and build script.
    fn normal(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| dependency.kind.is_none())
    }
}

/// Checks every rule, and prints what it found.
///
/// # Errors
/// All rules that are broken.
pub(crate) fn check(root: &Path) -> Result<()> {
    let metadata: Metadata =
        serde_json::from_str(&output(cargo().current_dir(root).args(["metadata", "--no-deps", "--format-version", "1"]))?)?;
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut broken = Vec::new();
    for package in &metadata.packages {
        arrows(package, &members, &mut broken);
        cuda(package, &members, &mut broken);
        if CUDA_CRATES.contains(&package.name.as_str()) || package.is_private() {
            continue;
        }
        // A face reaches CUDA by its feature, and by nothing else; the laws reach any provider only by theirs.
        let by: &[&str] = if package.name == LAWS { &LAWS_PROVIDERS } else { &[CUDA_FEATURE] };
        let brings = |feature: &str| feature == "default" || by.contains(&feature);
        let without = package.features.keys().filter(|feature| !brings(feature));
        let without = without.map(String::as_str).collect::<Vec<_>>().join(",");
        let features: &[&str] = match package.name == LAWS || FACES.contains(&package.name.as_str()) {
            true => &["--no-default-features", "--features", &without],
            false => &["--all-features"],
        };
        let reached = tree(root, &[&["-p", &package.name, "--target", "all", "-e", "normal,build"], features].concat())?;
        if reached.contains(CUDA) {
            broken.push(format!("{} reaches {CUDA}", package.name));
        }
        // Who tests with the laws must not get this workspace with them.
        if package.name == LAWS {
            for ours in reached.iter().filter(|name| members.contains(name.as_str()) && !CONTRACTS.contains(&name.as_str())) {
                broken.push(format!("{LAWS} reaches {ours} without {}", LAWS_PROVIDERS.join(" and ")));
            }
        }
        if CONTRACTS.contains(&package.name.as_str()) {
            contract(root, package, &members, &reached, &mut broken)?;
        }
        if package.name == "zarr-codecs-cpu" {
            codecs(root, package, &mut broken)?;
        }
    }
    if broken.is_empty() {
        println!("check-deps: {} crates hold the rules", metadata.packages.len());
        Ok(())
    } else {
        Err(format!("check-deps:\n  {}", broken.join("\n  ")).into())
    }
}

/// Who names a crate for CUDA, and whom these name.
fn cuda(package: &Package, members: &BTreeSet<&str>, broken: &mut Vec<String>) {
    let name = package.name.as_str();
    if CUDA_CRATES.contains(&name) {
        for dependency in package.dependencies.iter().filter(|dependency| members.contains(dependency.name.as_str())) {
            let named = dependency.name.as_str();
            let law_in_tests = named == LAWS && dependency.kind.as_deref() == Some("dev");
            if !CONTRACTS.contains(&named) && !CUDA_CRATES.contains(&named) && !law_in_tests {
                broken.push(format!("{name} names {named}, which is no contract"));
            }
        }
    } else if !package.is_private() {
        for dependency in package.dependencies.iter().filter(|dependency| CUDA_CRATES.contains(&dependency.name.as_str())) {
            if !((FACES.contains(&name) || name == LAWS) && dependency.optional && dependency.kind.is_none()) {
                broken.push(format!("{name} names {}, and is no face with a feature for it", dependency.name));
            }
        }
        let by_default = package.features.get("default").is_some_and(|default| default.iter().any(|feature| feature == CUDA_FEATURE));
        if by_default && name != CUDA_FACE {
            broken.push(format!("{name} takes CUDA by default"));
        }
    }
}

/// Arrows between our crates point one way.
fn arrows(package: &Package, members: &BTreeSet<&str>, broken: &mut Vec<String>) {
    if FACES.contains(&package.name.as_str()) || CUDA_CRATES.contains(&package.name.as_str()) || package.is_private() {
        return;
    }
    let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == package.name) else {
        broken.push(format!("{} is not in the list of who may name whom", package.name));
        return;
    };
    for dependency in package.normal().filter(|dependency| members.contains(dependency.name.as_str())) {
        // The laws need contracts alone; what others are compared with, and what their program runs, comes by features.
        let optional = package.name == LAWS && dependency.optional;
        if !allowed.contains(&dependency.name.as_str()) && !optional {
            broken.push(format!("{} names {}", package.name, dependency.name));
        }
    }
}

fn contract(root: &Path, package: &Package, members: &BTreeSet<&str>, reached: &BTreeSet<String>, broken: &mut Vec<String>) -> Result<()> {
    let name = &package.name;
    let ours = |name: &str| members.contains(name);
    let direct: BTreeSet<&str> = package.normal().map(|dependency| dependency.name.as_str()).filter(|name| !ours(name)).collect();
    let linked = tree(root, &["-p", name, "--all-features", "-e", "normal,no-proc-macro"])?;
    let linked: Vec<&str> = linked.iter().map(String::as_str).filter(|name| !ours(name)).collect();
    println!("{name}: names {}, links {} ({})", direct.len(), linked.len(), linked.join(" "));
    if direct.len() > DIRECT {
        broken.push(format!("{name} names {} crates from outside, more than {DIRECT}: {direct:?}", direct.len()));
    }
    if linked.len() > LINKED {
        broken.push(format!("{name} links {} crates from outside, more than {LINKED}: {linked:?}", linked.len()));
    }
    for unwanted in NOT_IN_CONTRACTS.iter().filter(|unwanted| reached.contains(**unwanted)) {
        broken.push(format!("{name} reaches {unwanted}"));
    }
    Ok(())
}

/// Optional crates that hold no codec, but the types that a codec library speaks.
const TYPES: [&str; 2] = ["bytemuck", "half"];

/// A codec's feature pulls one codec library, and no other feature's.
fn codecs(root: &Path, package: &Package, broken: &mut Vec<String>) -> Result<()> {
    let libraries: BTreeSet<&str> =
        package.normal().filter(|dependency| dependency.optional).map(|dependency| dependency.name.as_str()).collect();
    let libraries: BTreeSet<&str> = libraries.into_iter().filter(|name| !TYPES.contains(name)).collect();
    let pulled = |features: &str| -> Result<BTreeSet<String>> {
        let reached = tree(root, &["-p", &package.name, "--no-default-features", "--features", features, "-e", "normal"])?;
        Ok(reached.into_iter().filter(|name| libraries.contains(name.as_str())).collect())
    };
    let none = pulled("")?;
    if !none.is_empty() {
        broken.push(format!("{} without features pulls {none:?}", package.name));
    }
    for feature in package.features.keys().filter(|feature| *feature != "default") {
        let pulled = pulled(feature)?;
        println!("{} with {feature}: {}", package.name, pulled.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
        let right = match *feature == CONTAINER.0 {
            true => pulled.iter().eq(CONTAINER.1),
            false => pulled.len() <= 1,
        };
        if !right {
            broken.push(format!("{} with {feature} pulls {pulled:?}", package.name));
        }
    }
    Ok(())
}

/// The crates that a build reaches, without the one it starts from.
fn tree(root: &Path, args: &[&str]) -> Result<BTreeSet<String>> {
    let text = output(cargo().current_dir(root).arg("tree").args(args).args(["--prefix", "none", "--format", "{p}"]))?;
    Ok(text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}
