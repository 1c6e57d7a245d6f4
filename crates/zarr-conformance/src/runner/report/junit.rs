//! The results as JUnit XML, after the schema that Jenkins, GitLab and others share: a suite for each subject, a test case for each case.

use std::fmt::Write as _;

use crate::runner::results::{Results, SubjectResult, Summary, Verdict};

/// The document.
pub(crate) fn render(results: &Results) -> String {
    let summary = results.summary;
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        xml,
        "<testsuites name=\"zarr-conformance\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{:.3}\">",
        summary.cases() + summary.subjects_skipped,
        summary.failed,
        results.seconds
    );
    for subject in &results.subjects {
        suite(&mut xml, results, subject);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, results: &Results, subject: &SubjectResult) {
    let summary = Summary::of([subject]);
    let name = escaped(&subject.name);
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3}\">",
        summary.cases() + summary.subjects_skipped,
        summary.failed,
        summary.unsupported + summary.subjects_skipped,
        subject.seconds
    );
    let _ = writeln!(xml, "    <properties>\n      <property name=\"seed\" value=\"{}\"/>\n    </properties>", results.seed);
    if let Some(reason) = &subject.skipped {
        let _ = writeln!(xml, "    <testcase name=\"all\" classname=\"{name}\" time=\"0\">");
        let _ = writeln!(xml, "      <skipped message=\"{}\"/>\n    </testcase>", escaped(reason));
    }
    for case in &subject.cases {
        let _ = write!(xml, "    <testcase name=\"{}\" classname=\"{name}\" time=\"{:.3}\"", escaped(&case.id), case.seconds);
        match case.outcome {
            Verdict::Pass => xml.push_str("/>\n"),
            Verdict::Unsupported => {
                let _ = writeln!(xml, ">\n      <skipped message=\"unsupported: {}\"/>\n    </testcase>", escaped(&case.message));
            }
            Verdict::Fail => {
                let law = results.laws.get(&case.law).map(String::as_str).unwrap_or_default();
                let first = case.message.lines().next().unwrap_or_default();
                let _ = writeln!(xml, ">\n      <failure message=\"{}\" type=\"{}\">", escaped(first), escaped(&case.law));
                let _ = writeln!(xml, "law: {}\nfound: {}", escaped(law), escaped(&case.message));
                if let Some(input) = &case.input {
                    let _ = writeln!(xml, "input: {} bytes in {}", input.bytes, escaped(&input.file));
                    if let Some(replay) = &input.replay {
                        let _ = writeln!(xml, "the input alone: {}", escaped(replay));
                    }
                }
                if let Some(replay) = &case.replay {
                    let _ = writeln!(xml, "replay: {}", escaped(replay));
                }
                xml.push_str("      </failure>\n    </testcase>\n");
            }
        }
    }
    xml.push_str("  </testsuite>\n");
}

/// Text as XML holds it. Characters that XML 1.0 cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' | '\t' => xml.push(character),
            '\u{FFFE}' | '\u{FFFF}' => xml.push('\u{FFFD}'),
            control if control.is_control() => xml.push('\u{FFFD}'),
            other => xml.push(other),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markup_and_what_xml_cannot_hold_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\u{1}\n"), "a&lt;b&gt; &amp; &quot;c&quot;\u{FFFD}\n");
    }
}
