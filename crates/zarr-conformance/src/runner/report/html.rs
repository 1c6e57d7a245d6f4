//! The results as one file for a browser: style, script and data are in it, and nothing is loaded.

use crate::runner::failure::{Context as _, Result};
use crate::runner::results::Results;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
///
/// # Errors
/// When the results cannot be written as JSON.
pub(crate) fn render(results: &Results) -> Result<String> {
    let json = serde_json::to_string(results).context(|| "cannot write the results".to_owned())?;
    // Inside of a script element, only `<` could end it.
    let json = json.replace('<', "\\u003c");
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + json.len());
    // One pass, so that nothing in the data is taken for a mark.
    let mut rest = PAGE;
    for (mark, content) in [("/*style*/", STYLE), ("/*results*/", &json), ("/*script*/", SCRIPT)] {
        let Some((before, after)) = rest.split_once(mark) else { continue };
        page.push_str(before);
        page.push_str(content);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}
