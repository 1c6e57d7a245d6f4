//! `cargo xtask api`: the public items of the contract crates, as committed text.
//!
//! The text comes from the sources, not from the compiler: every `pub` item of every module with its signature, without bodies, private fields
//! and docs. `unreachable_pub` sees to it that what is `pub` is public. Items that macros make are missing.

use std::fs;
use std::path::Path;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, File, ImplItem, Item, TraitItem, Visibility};

use crate::Result;
use crate::deps::CONTRACTS;

/// Writes the listings, or with `check` compares them.
///
/// # Errors
/// When a source cannot be read, or a listing differs.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let mut differ = Vec::new();
    for name in CONTRACTS {
        let found = listing(&root.join("crates").join(name).join("src/lib.rs"))?;
        let path = root.join("ci/api").join(format!("{name}.txt"));
        if !check {
            fs::write(path, found)?;
            continue;
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if committed != found {
            differ.push(format!("{name}:{}", difference(&committed, &found)));
        }
    }
    if differ.is_empty() {
        return Ok(());
    }
    Err(format!("public items differ from ci/api; if that is meant, run `cargo xtask api`\n{}", differ.join("\n")).into())
}

/// Lines of one text that the other lacks.
fn difference(old: &str, new: &str) -> String {
    let lacks = |text: &str, line: &str| !text.lines().any(|other| other == line);
    let gone = old.lines().filter(|line| lacks(new, line)).map(|line| format!("\n  - {line}"));
    let come = new.lines().filter(|line| lacks(old, line)).map(|line| format!("\n  + {line}"));
    gone.chain(come).collect()
}

fn listing(lib: &Path) -> Result<String> {
    let mut entries = Vec::new();
    let folder = lib.parent().ok_or("no folder")?;
    collect(lib, folder, &mut entries)?;
    entries.sort_by_cached_key(|entry: &String| entry.lines().filter(|line| !line.starts_with("#[")).collect::<String>());
    entries.dedup();
    Ok(entries.concat())
}

/// Public items of a file and of the modules below it, each as text.
fn collect(path: &Path, folder: &Path, entries: &mut Vec<String>) -> Result<()> {
    let source = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))?;
    items(file.items, folder, entries)
}

fn items(list: Vec<Item>, folder: &Path, entries: &mut Vec<String>) -> Result<()> {
    for item in list {
        if let Item::Mod(module) = item {
            if is_test(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let below = folder.join(&name);
            match module.content {
                Some((_, content)) => items(content, &below, entries)?,
                None => {
                    let file = folder.join(format!("{name}.rs"));
                    let file = if file.exists() { file } else { below.join("mod.rs") };
                    collect(&file, &below, entries)?;
                }
            }
        } else if let Some(item) = public(item) {
            entries.push(prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items: vec![item] }));
        }
    }
    Ok(())
}

/// The public face of an item.
fn public(mut item: Item) -> Option<Item> {
    match &mut item {
        Item::Struct(of) => {
            keep(&of.vis, &mut of.attrs)?;
            fields(&mut of.fields);
        }
        Item::Enum(of) => {
            keep(&of.vis, &mut of.attrs)?;
            for variant in &mut of.variants {
                strip(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| strip(&mut field.attrs));
            }
        }
        Item::Trait(of) => {
            keep(&of.vis, &mut of.attrs)?;
            for item in &mut of.items {
                match item {
                    TraitItem::Fn(of) => {
                        strip(&mut of.attrs);
                        // A default body is part of the contract, what it does is not.
                        of.default = of.default.take().map(|_| syn::parse_quote!({}));
                    }
                    TraitItem::Const(of) => strip(&mut of.attrs),
                    TraitItem::Type(of) => strip(&mut of.attrs),
                    _ => {}
                }
            }
        }
        Item::Fn(of) => {
            keep(&of.vis, &mut of.attrs)?;
            *of.block = syn::parse_quote!({});
        }
        Item::Const(of) => keep(&of.vis, &mut of.attrs)?,
        Item::Type(of) => keep(&of.vis, &mut of.attrs)?,
        Item::Use(of) => keep(&of.vis, &mut of.attrs)?,
        Item::Impl(of) => {
            if is_test(&of.attrs) {
                return None;
            }
            strip(&mut of.attrs);
            if of.trait_.is_some() {
                of.items.clear();
            } else {
                of.items.retain_mut(public_member);
                if of.items.is_empty() {
                    return None;
                }
            }
        }
        _ => return None,
    }
    Some(item)
}

fn public_member(member: &mut ImplItem) -> bool {
    match member {
        ImplItem::Fn(of) => {
            of.block = syn::parse_quote!({});
            keep(&of.vis, &mut of.attrs).is_some()
        }
        ImplItem::Const(of) => keep(&of.vis, &mut of.attrs).is_some(),
        _ => false,
    }
}

/// Takes private fields away; that there are some still shows.
fn fields(fields: &mut Fields) {
    let is_public = |field: &syn::Field| matches!(field.vis, Visibility::Public(_));
    match fields {
        Fields::Named(named) => {
            let all = named.named.len();
            let mut kept: Punctuated<_, _> = std::mem::take(&mut named.named).into_iter().filter(is_public).collect();
            kept.iter_mut().for_each(|field| strip(&mut field.attrs));
            if kept.len() < all {
                let hidden: syn::FieldsNamed = syn::parse_quote!({ _private: () });
                kept.extend(hidden.named);
            }
            named.named = kept;
        }
        Fields::Unnamed(unnamed) => {
            for field in &mut unnamed.unnamed {
                strip(&mut field.attrs);
                if !is_public(field) {
                    field.ty = syn::parse_quote!(_);
                }
            }
        }
        Fields::Unit => {}
    }
}

/// `None` unless public; attributes that callers do not see go.
fn keep(visibility: &Visibility, attributes: &mut Vec<Attribute>) -> Option<()> {
    if !matches!(visibility, Visibility::Public(_)) || is_test(attributes) {
        return None;
    }
    strip(attributes);
    Some(())
}

fn strip(attributes: &mut Vec<Attribute>) {
    const SEEN: [&str; 6] = ["derive", "non_exhaustive", "must_use", "deprecated", "cfg", "repr"];
    attributes.retain(|attribute| SEEN.iter().any(|name| attribute.path().is_ident(name)));
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test"))
}
