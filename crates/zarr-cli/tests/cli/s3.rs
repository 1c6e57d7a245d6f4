//! Writing to an object store: a server in memory that speaks as much of S3 as that takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::common::{Run, sample, zarr};

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Serves a bucket of any name. Objects outside of `visible` are refused, as to who has rights below a prefix alone.
struct Server {
    objects: Objects,
    endpoint: String,
}

impl Server {
    fn new(visible: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("endpoint=http://{}", listener.local_addr().unwrap());
        let objects = Objects::default();
        let served = Arc::clone(&objects);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let objects = Arc::clone(&served);
                std::thread::spawn(move || while answer(&stream, &objects, visible).is_some() {});
            }
        });
        Self { objects, endpoint }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        zarr(&[arguments, &["--setting", &self.endpoint, "--setting", "allow_http=true", "--setting", "skip_signature=true"]].concat())
    }

    fn ok(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.text(), run.stderr);
        run
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next().unwrap()).to_digit(16).unwrap() as u8;
        bytes.push(if byte == b'%' { digit() << 4 | digit() } else { byte });
    }
    String::from_utf8(bytes).unwrap()
}

/// Answers one request; `None` when there are no more.
fn answer(mut stream: &TcpStream, objects: &Objects, visible: &str) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        lines
            .iter()
            .find_map(|line| Some(line.split_once(':')?).filter(|(key, _)| key.eq_ignore_ascii_case(name)))
            .map(|(_, value)| value.trim())
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let mut request = lines[0].split(' ');
    let (method, target) = (request.next()?, request.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = decoded(path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key));
    let mut objects = objects.lock().unwrap();
    let (status, sent, range) = match method {
        "GET" if key.is_empty() => ("200 OK", listing(&objects, query).into_bytes(), None),
        "POST" => {
            let text = String::from_utf8(body).unwrap();
            let mut done = "<DeleteResult>".to_owned();
            for key in text.split("<Key>").skip(1).map(|rest| rest.split_once('<').unwrap().0) {
                objects.remove(key);
                let _ = write!(done, "<Deleted><Key>{key}</Key></Deleted>");
            }
            ("200 OK", (done + "</DeleteResult>").into_bytes(), None)
        }
        _ if !key.starts_with(visible) => ("403 Forbidden", Vec::new(), None),
        "PUT" => {
            objects.insert(key, body);
            ("200 OK", Vec::new(), None)
        }
        _ => match (objects.get(&key), header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'))) {
            (None, _) => ("404 Not Found", Vec::new(), None),
            (Some(object), None) => ("200 OK", object.clone(), None),
            (Some(object), Some((start, end))) => {
                let number = |text: &str| text.parse().unwrap_or(object.len());
                let range = match start {
                    "" => object.len().saturating_sub(number(end))..object.len(),
                    start => number(start)..number(end).saturating_add(1).min(object.len()),
                };
                ("206 Partial Content", object[range.clone()].to_vec(), Some((range, object.len())))
            }
        },
    };
    let range = range.map(|(range, len)| format!("Content-Range: bytes {}-{}/{len}\r\n", range.start, range.end - 1)).unwrap_or_default();
    let fixed = "ETag: \"x\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
    let mut answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fixed}{range}\r\n", sent.len()).into_bytes();
    if method != "HEAD" {
        answer.extend(sent);
    }
    stream.write_all(&answer).ok()
}

fn listing(objects: &BTreeMap<String, Vec<u8>>, query: &str) -> String {
    let of = |name: &str| {
        query
            .split('&')
            .filter_map(|part| part.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decoded(&value.replace('+', " ")))
    };
    let (prefix, delimiter) = (of("prefix").unwrap_or_default(), of("delimiter").unwrap_or_default());
    let mut text = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    let mut folders = BTreeSet::new();
    for (key, object) in objects.iter().filter(|(key, _)| key.starts_with(&prefix)) {
        match key[prefix.len()..].split_once('/').filter(|_| !delimiter.is_empty()) {
            Some((folder, _)) => drop(folders.insert(format!("{prefix}{folder}/"))),
            None => {
                let (modified, len) = ("2026-01-01T00:00:00.000Z", object.len());
                let _ = write!(
                    text,
                    "<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><ETag>x</ETag><Size>{len}</Size></Contents>"
                );
            }
        }
    }
    for folder in folders {
        let _ = write!(text, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
    }
    text + "</ListBucketResult>"
}

#[test]
fn what_is_created_in_an_object_store_belongs_to_its_hierarchy() {
    let server = Server::new("");
    server.ok(&["copy", &sample("north_america.zarr"), "s3://bucket/in/data.zarr"]);
    let int8 = ["--shape", "3", "--dtype", "int8"];
    server.ok(&[&["create", "s3://bucket/in/data.zarr/a%20group/one"][..], &int8].concat());
    server.ok(&["create", "s3://bucket/in/data.zarr/bare", "--group", "--attributes", r#"{"a": 1}"#]);
    server.ok(&["copy", &sample("north_america.zarr/height"), "s3://bucket/in/data.zarr/two/height"]);
    let info = server.ok(&["info", "s3://bucket/in/data.zarr", "--json"]).json();
    assert_eq!(info["consolidated"], true);
    for name in ["a group", "bare", "two"] {
        let found = info["children"].as_array().unwrap().iter().any(|child| child["name"] == name && child["kind"] == "group");
        assert!(found, "{name}: {info}");
    }
    server.ok(&["validate", "s3://bucket/in/data.zarr"]);
    let inside = server.run(&[&["create", "s3://bucket/in/data.zarr/height/deep/x"][..], &int8].concat());
    assert!(
        inside.code != 0 && inside.stderr.contains("there is already an array at /height in s3://bucket/in/data.zarr"),
        "{}",
        inside.stderr
    );
    // The version is the hierarchy's.
    server.ok(&["copy", &sample("sea_surface.zarr"), "s3://bucket/two.zarr"]);
    server.ok(&["create", "s3://bucket/two.zarr/bare", "--group"]);
    assert!(server.objects.lock().unwrap().contains_key("two.zarr/bare/.zgroup"));
    assert!(server.ok(&["tree", "s3://bucket/two.zarr"]).text().contains("bare"));
    // Nothing is made above what is in no hierarchy.
    server.ok(&[&["create", "s3://bucket/apart/from/all"][..], &int8].concat());
    assert_eq!(
        server.objects.lock().unwrap().keys().filter(|key| key.starts_with("apart/")).collect::<Vec<_>>(),
        ["apart/from/all/zarr.json"]
    );
}

#[test]
fn a_hierarchy_that_may_not_be_looked_for_is_told() {
    let server = Server::new("mine/");
    let int8 = ["--shape", "3", "--dtype", "int8"];
    let alone = server.ok(&[&["create", "s3://bucket/mine/a"][..], &int8].concat());
    assert_eq!(alone.stderr.matches("consolidated metadata").count(), 1, "{}", alone.stderr);
    assert!(alone.stderr.contains("whether it is in a hierarchy cannot be found out"), "{}", alone.stderr);
    assert!(alone.stderr.contains("permission denied, key `zarr.json`"), "{}", alone.stderr);
    server.run(&["copy", &sample("north_america.zarr"), "s3://bucket/mine/data.zarr", "-q"]);
    let inside = server.ok(&[&["create", "s3://bucket/mine/data.zarr/new"][..], &int8].concat());
    assert!(!inside.stderr.contains("hierarchy"), "{}", inside.stderr);
    assert!(server.ok(&["tree", "s3://bucket/mine/data.zarr"]).text().contains("new"));
}
