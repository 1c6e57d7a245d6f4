//! The page, opened in a browser without a window, and used as one uses it: by clicks and by typing.
//!
//! The browser is any that speaks the DevTools protocol: `ZARR_BROWSER`, or Chromium where it is installed. Without one the tests are skipped, and say so;
//! `ZARR_REQUIRE_BROWSER=1` makes that a failure.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{program, run, trouble};

/// How long a page may take to come to something.
const PATIENCE: Duration = Duration::from_secs(60);

fn browser() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ZARR_BROWSER") {
        return Some(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    names.iter().flat_map(|name| places.iter().map(move |place| place.join(name))).find(|path| path.is_file())
}

/// A page in a browser, which ends with this.
struct Page {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    _profile: TempDir,
}

impl Page {
    /// `None` where there is no browser.
    fn open(file: &Path) -> Option<Self> {
        let Some(browser) = browser() else {
            assert!(std::env::var_os("ZARR_REQUIRE_BROWSER").is_none_or(|value| value != "1"), "there is no browser here");
            // Past the capture of the test harness.
            let _ = std::io::stderr().write_all(b"skipped: there is no browser here to open the report in\n");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken on descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"])
            .arg(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut page = Self { process, to, from, session: None, next: 0, _profile: profile };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = page.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        page.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        page.call("Emulation.setDeviceMetricsOverride", json!({ "width": 1366, "height": 768, "deviceScaleFactor": 1, "mobile": false }));
        page.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        page.until("document.readyState === 'complete' && document.querySelector('#count')?.textContent !== ''");
        Some(page)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert!(!bytes.is_empty(), "the browser is gone");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// What an expression of the page's script is.
    fn value(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    fn until(&mut self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "never: {expression}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Clicks into the middle of an element, where it can be seen.
    fn click(&mut self, selector: &str) {
        let element = format!("document.querySelector({})", json!(selector));
        self.value(&format!("{element}.scrollIntoView({{ block: 'center' }})"));
        let place =
            self.value(&format!("(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())"));
        let hit = self.value(&format!("{element}.contains(document.elementFromPoint({}, {}))", place[0], place[1]));
        assert_eq!(hit, true, "something lies over {selector}");
        for kind in ["mousePressed", "mouseReleased"] {
            self.call("Input.dispatchMouseEvent", json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 }));
        }
    }

    fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The ids of the cases that are listed.
    fn listed(&mut self) -> Vec<String> {
        let ids = self.value("[...document.querySelectorAll('#list > details')].map((row) => row.querySelector('.mono').textContent)");
        ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn failures_are_found_filtered_and_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    run(trouble(&folder.path().join("saved")).arg("--html").arg(&file));
    let Some(mut page) = Page::open(&file) else { return };
    assert_eq!(page.value("document.title"), "zarr-conformance: 8 failed");
    assert_eq!(page.value("performance.getEntriesByType('resource').length"), 0, "something is loaded");
    assert_eq!(page.value("document.documentElement.scrollWidth <= 1366"), true, "wider than a laptop's screen");

    // Failures come first; all else is there when it is asked for.
    assert_eq!(page.listed().len(), 8);
    page.click("#clear");
    assert_eq!(page.listed().len(), 16);
    page.click("#tiles button:nth-child(5)");
    assert_eq!(page.listed(), ["trouble/unsupported"]);
    page.click("#tiles button:nth-child(6)");
    assert_eq!(page.listed(), ["all cases"]);

    // Two words, in any order, in upper or lower case.
    page.click("#clear");
    page.click("#text");
    page.write("SAYS panic");
    assert_eq!(page.listed(), ["trouble/panic"]);
    assert_eq!(page.value("document.querySelector('#count').textContent"), "1 of 16 cases");

    // What one needs to know of a failure is in it, as text.
    page.click("#list summary");
    page.until("document.querySelector('#list details').open && document.querySelector('#list dl') !== null");
    let shown = page.value("document.querySelector('#list dl').innerText");
    for part in [
        "a subject goes wrong only as far as the case goes",
        "panicked: <panics> & \"says\" so",
        "replay trouble/panic --subject trouble/cases --seed 0",
        "2 bytes in",
        "0000  00 ff",
    ] {
        assert!(shown.as_str().unwrap().contains(part), "{part}: {shown}");
    }
    assert_eq!(page.value("document.querySelector('#list details dd').getBoundingClientRect().right <= 1366"), true);
    page.click("#list summary");
    page.until("!document.querySelector('#list details').open");
}

#[test]
fn the_matrix_leads_to_its_cases() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let done = run(program().args(["run", "--subject", "cpu/crc32c", "--subject", "cpu/gzip", "--filter", "decode", "--html"]).arg(&file));
    assert!(done.status.success());
    let Some(mut page) = Page::open(&file) else { return };
    assert_eq!(page.value("document.title"), "zarr-conformance: passed");
    let cell = "#places tbody tr:nth-child(1) td:nth-child(2) button";
    assert_eq!(page.value("document.querySelector('#places tbody').rows[0].innerText.split(/\\s+/).join(' ')"), "crc32c ok 6");
    page.click(cell);
    assert_eq!(
        page.value("[...document.querySelectorAll('#list .quiet.mono')].every((one) => one.textContent.startsWith('cpu/crc32c'))"),
        true
    );
    assert_eq!(page.value("document.querySelector('#place').innerText"), "Only cpu, crc32c All places");
    // By data type, by the keyboard.
    page.value("document.querySelector('#implementation').focus()");
    for kind in ["keyDown", "keyUp"] {
        page.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40 }));
    }
    page.until("document.querySelector('#places th:nth-child(2)').textContent === 'complex128'");
    page.click(cell);
    assert_eq!(page.value("document.querySelector('#place').innerText"), "Only cpu, crc32c, complex128 All places");
    page.click("#place button");
    assert_eq!(page.value("document.querySelector('#place').hidden"), true);
}
