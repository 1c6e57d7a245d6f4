//! Reading from a web server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use crate::common::{bytes_of, copy_directory, ok, sample, temporary, zarr};

/// Serves the files of a directory, with ranges, until the test ends.
fn serve(root: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || while answer(&stream, &root) {});
        }
    });
    format!("http://{address}")
}

/// Answers one request; `false` when there are no more.
fn answer(stream: &TcpStream, root: &std::path::Path) -> bool {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => lines.push(line.trim().to_owned()),
        }
    }
    let mut request = lines[0].split(' ');
    let (method, path) = (request.next().unwrap(), request.next().unwrap().trim_start_matches('/'));
    let mut stream = stream;
    let Ok(body) = std::fs::read(root.join(path)) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").is_ok();
    };
    let range = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("range").then(|| value.trim().trim_start_matches("bytes=").to_owned())
    });
    let (status, part, bounds) = match range.as_deref().and_then(|range| range.split_once('-')) {
        Some((first, last)) => {
            let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) => (first, (last + 1).min(body.len())),
                (Ok(first), Err(_)) => (first, body.len()),
                (Err(_), Ok(suffix)) => (body.len().saturating_sub(suffix), body.len()),
                (Err(_), Err(_)) => return false,
            };
            ("206 Partial Content", &body[start..end], format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, body.len()))
        }
        None => ("200 OK", &body[..], String::new()),
    };
    let header = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{bounds}\r\n",
        part.len()
    );
    let sent = stream.write_all(header.as_bytes()).is_ok();
    sent && (method == "HEAD" || stream.write_all(part).is_ok())
}

#[test]
fn a_hierarchy_behind_a_web_server() {
    let (_directory, at) = temporary();
    let url = serve(sample("").into());
    let data = format!("{url}/north_america.zarr");
    let tree = ok(&["tree", &data]);
    assert!(tree.text().contains("9 arrays, 1.39 MB stored, 1.75 MB decoded, ratio 1.26"), "{}", tree.text());
    let array = format!("{data}/air_temperature");
    let read = ok(&["read", &array, "--select", "0", "--json"]).json();
    // The index of one shard and one inner chunk of it.
    assert_eq!(read["requests"], 2);
    assert!(read["fetched_bytes"].as_u64().unwrap() < 200_000, "{read}");
    let raw = ok(&["cat", &array, "-f", "raw"]).stdout;
    assert_eq!(raw, bytes_of(&sample("north_america.zarr/air_temperature")));
    assert!(ok(&["validate", &data]).text().contains("is valid: 10 chunks in 9 arrays"));
    ok(&["copy", &data, &at("copy"), "--shards", "none", "--codec", "blosc", "--memory", "4MiB"]);
    assert_eq!(bytes_of(&at("copy/air_temperature")), raw);
    let missing = zarr(&["info", &format!("{data}/nothing")]);
    assert_eq!((missing.code, missing.stderr), (1, format!("error: there is no Zarr array or group at {data}/nothing\n")));
    ok(&["copy", &sample("north_america.zarr"), &at("apart"), "--consolidate", "no"]);
    let apart = serve(at("apart").into());
    let info = zarr(&["info", &apart]);
    let lists = format!("{apart} cannot be listed, and the group / has no consolidated metadata that names what is in it");
    assert!(info.text().contains("group, v3\n  attributes\n") && info.stderr.contains(&lists), "{}{}", info.text(), info.stderr);
    assert_eq!(ok(&["info", &apart, "--json"]).json()["children"], serde_json::Value::Null);
    let tree = zarr(&["tree", &apart]);
    assert!(tree.code == 1 && tree.stderr.contains(&lists), "{}", tree.stderr);
    let refused = zarr(&["create", &format!("{url}/x"), "--shape", "1", "--dtype", "int8"]);
    assert_eq!((refused.code, refused.stderr), (2, format!("error: {url}/x can only be read\n")));
}

#[test]
fn consolidated_metadata_that_differ_behind_a_web_server() {
    let (_directory, at) = temporary();
    copy_directory(&sample("north_america.zarr"), &at("n"));
    std::fs::remove_dir_all(at("n/height")).unwrap();
    let text = std::fs::read_to_string(at("n/time_bnds/zarr.json")).unwrap();
    std::fs::write(at("n/time_bnds/zarr.json"), text.replace("\"attributes\": {", "\"attributes\": {\"new\": 1,")).unwrap();
    std::fs::write(at("n/time/zarr.json"), "{").unwrap();
    let run = zarr(&["validate", &serve(at("n").into()), "--json"]);
    let json = run.json();
    let told = |problem: &serde_json::Value| (problem["kind"].to_string(), problem["key"].to_string(), problem["reason"].to_string());
    let told: Vec<_> = json["problems"].as_array().unwrap().iter().map(told).collect();
    let [(broken, time, _), differences @ ..] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((broken.as_str(), time.as_str()), ("\"metadata\"", "\"/time\""));
    let reasons: Vec<_> = differences.iter().map(|(_, _, reason)| reason.trim_matches('"')).collect();
    assert_eq!(reasons, ["/height is named, and not stored", "/time_bnds differs from what is stored"]);
    assert_eq!((run.code, &json["arrays"]), (1, &7.into()));
}

#[test]
fn an_archive_behind_a_web_server() {
    let (directory, at) = temporary();
    ok(&["copy", &sample("sea_surface.zarr"), &at("s.zip")]);
    let url = serve(directory.path().to_owned());
    let read = ok(&["read", &format!("{url}/s.zip/surface_temperature"), "--json"]).json();
    assert_eq!(read["count"], 54 * 18 * 432 - 110_970);
}

/// Answers every request with these bytes, and closes the connection.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/data.zarr")
}

#[test]
fn servers_that_answer_otherwise() {
    let fails = |answer: &'static str, pieces: &[&str]| {
        let url = answering(answer);
        let run = zarr(&["info", &url]);
        assert_eq!(run.code, 1);
        for piece in [&format!("error: cannot open {url}\n"), "zarr.json"].iter().chain(pieces) {
            assert!(run.stderr.contains(piece), "{answer:?}: no {piece:?} in {}", run.stderr);
        }
    };
    fails(
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<Error>no</E>",
        &["permission denied", "403 Forbidden: <Error>no</E>", "hint: for object stores, credentials come from the environment"],
    );
    fails("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", &["permission denied", "401 Unauthorized"]);
    fails(
        "HTTP/1.1 200 OK\r\nContent-Length: 28\r\nConnection: close\r\n\r\n<!DOCTYPE html><html></html>",
        &["expected a value, found `<`: this is a page of HTML or XML"],
    );
    fails(
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{\"zarr_format\"",
        &["temporary failure", "end of file before message length reached", "hint: the same command may work when it is run again"],
    );
}

#[test]
fn a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data.zarr", listener.local_addr().unwrap());
    drop(listener);
    let run = zarr(&["info", &url]);
    let pieces = [format!("error: cannot open {url}\n").as_str(), "onnection refused", "hint: is the address right, is the server up"]
        .map(|piece| run.stderr.contains(piece));
    assert_eq!((run.code, pieces), (1, [true; 3]), "{}", run.stderr);
}
