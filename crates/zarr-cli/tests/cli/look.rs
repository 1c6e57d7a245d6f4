//! `info`, `tree`, `read`, `view`, `completions`, and what is said when something is wrong.

use crate::common::{copy_directory, ok, run, sample, temporary, zarr};

#[test]
fn info_of_an_array() {
    let text = ok(&["info", &sample("north_america.zarr/air_temperature")]);
    let expected = "\
air_temperature  array, v3
  shape       240×37×49  (time, latitude, longitude)
  data type   float32
  fill value  \"NaN\"
  shards      120×37×49, a grid of 2×1×1
  chunks      24×37×49, 174 kB each
  codecs      zstd(9)
  stored      1.39 MB in 2 of 2 shards
  decoded     1.74 MB, 1.26 times the stored size
  attributes
    standard_name: \"air_temperature\"
";
    assert!(text.text().starts_with(expected), "{}", text.text());
    let json = ok(&["info", "--json", &sample("sea_surface.zarr/surface_temperature")]).json();
    assert_eq!(json["shape"], serde_json::json!([54, 18, 432]));
    assert_eq!(json["zarr_format"], 2);
    assert_eq!(json["decoded_bytes"], 54 * 18 * 432 * 4);
    assert_eq!((&json["chunks_present"], &json["chunks_total"]), (&18.into(), &18.into()));
    assert_eq!(json["attributes"]["units"], "K");
    assert_eq!(json["dimension_names"], serde_json::json!(["time", "latitude", "longitude"]));
}

#[test]
fn a_tree() {
    let tree = ok(&["tree", &sample("north_america.zarr")]);
    let lines: Vec<&str> = tree.text().lines().collect();
    assert_eq!(
        lines[2],
        "├── air_temperature          240×37×49  float32  24×37×49 in 120×37×49  zstd(9)  1.39 MB  1.74 MB   1.26      2/2"
    );
    assert!(lines[10].starts_with("└── time_bnds"), "{}", lines[10]);
    assert_eq!(lines[11], "9 arrays, 1.39 MB stored, 1.75 MB decoded, ratio 1.26");
    let json = ok(&["tree", &sample("sea_surface.zarr"), "--json"]).json();
    assert_eq!(json["nodes"].as_array().unwrap().len(), 10);
    assert_eq!(json["nodes"][0]["consolidated"], true);
}

#[test]
fn a_node_that_cannot_be_opened_does_not_hide_the_others() {
    let (_directory, at) = temporary();
    crate::common::copy_directory(&sample("sea_surface.zarr"), &at("s"));
    std::fs::remove_file(at("s/.zmetadata")).unwrap();
    std::fs::write(at("s/latitude/.zarray"), "{\"zarr_format\": 2}").unwrap();
    let tree = zarr(&["tree", &at("s")]);
    assert_eq!(tree.code, 1);
    assert!(
        tree.text().contains("├── latitude                      cannot be opened: latitude/.zarray: $: the required key"),
        "{}",
        tree.text()
    );
    assert!(tree.text().contains("surface_temperature           54×18×432"));
    let info = zarr(&["info", &at("s")]);
    assert_eq!(info.code, 1);
    assert!(info.text().contains("latitude ") && info.text().contains("surface_temperature "), "{}", info.text());
    assert!(info.stderr.contains("error: cannot open latitude") && info.stderr.contains("the required key"), "{}", info.stderr);
    let read = zarr(&["read", &at("s"), "--device", "cpu"]);
    assert_eq!(read.code, 1);
    assert!(read.stderr.contains("error: 1 of 9 arrays could not be read"), "{}", read.stderr);
    assert!(read.text().contains("8 arrays read on CPU"));
}

#[test]
fn reading_says_what_came_out() {
    let read = ok(&["read", &sample("north_america.zarr"), "--device", "cpu"]);
    assert!(read.text().contains("9 arrays read on CPU: 1.39 MB in "), "{}", read.text());
    let json = ok(&["read", &sample("north_america.zarr/air_temperature"), "--json", "--device", "cpu"]).json();
    assert_eq!((&json["min"], &json["max"]), (&257.31882.into(), &306.0733.into()));
    assert!((json["mean"].as_f64().unwrap() - 286.4776361).abs() < 1e-6);
    assert_eq!(json["count"], 240 * 37 * 49);
    assert_eq!((json["decoded_bytes"].as_u64(), json["requests"].as_u64()), (Some(1_740_480), Some(6)));
    assert_eq!(json["ran"][1], "zstd, bytes on host by cpu");
    // The sea has no temperature on land.
    let json = ok(&["read", &sample("sea_surface.zarr/surface_temperature"), "--json", "--device", "cpu", "--threads", "1"]).json();
    assert_eq!((&json["fill"], &json["nan"], &json["threads"]), (&110_970.into(), &0.into(), &1.into()));
    assert!(json["max"].as_f64().unwrap() < 310.0);
    let part = ok(&["read", &sample("north_america.zarr/air_temperature"), "--select", "-1, ::2, [0, 5]", "--json"]).json();
    assert_eq!(part["shape"], serde_json::json!([19, 2]));
}

#[test]
fn pictures() {
    let (_directory, at) = temporary();
    let array = sample("north_america.zarr/air_temperature");
    let said = ok(&["view", &array, "--select", "120", "-o", &at("a.png"), "--map", "magma"]);
    assert!(said.text().starts_with("air_temperature[120]  37×49, colours from 262.854 to 299.471 K, north up → "), "{}", said.text());
    let pixel = |file: &str, x: usize, y: usize| {
        let mut reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap())).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (49 * 11, 37 * 11));
        let at = (y * info.width as usize + x) * 4;
        [pixels[at], pixels[at + 1], pixels[at + 2], pixels[at + 3]]
    };
    // Warm in the south, cold in the north.
    let (north, south) = (pixel(&at("a.png"), 400, 5), pixel(&at("a.png"), 400, 400));
    assert!(u16::from(south[0]) > u16::from(north[0]) + 100, "{north:?} {south:?}");
    ok(&["view", &array, "--select", "120", "-o", &at("b.png"), "--map", "magma", "--as-stored"]);
    assert_eq!(pixel(&at("b.png"), 400, 401), north);
    // Without a terminal there are neither colours nor escapes.
    let drawn = ok(&["view", &array]);
    assert!(!drawn.text().contains('\x1b') && drawn.text().lines().count() > 15, "{}", drawn.text());
    let mut forced = crate::common::command(&["view", &array]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(run(forced).text().contains("\x1b[38;2;"));
    let mut plain = crate::common::command(&["view", &array]);
    plain.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!run(plain).text().contains('\x1b'));
    // Land is transparent.
    ok(&["view", &sample("sea_surface.zarr/surface_temperature"), "-o", &at("c.png"), "--zoom", "1"]);
    let mut reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(at("c.png")).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels.chunks_exact(4).filter(|pixel| pixel[3] == 0).count(), 110_970 / 54);
    assert_eq!(zarr(&["view", &sample("north_america.zarr/latitude")]).stderr, "error: an array of 1 dimension is no picture\n");
    assert_eq!(
        zarr(&["view", &array, "--select", "0, 1"]).stderr,
        "error: the selection has 49, and a picture two\nhint: select one position along the others: --select \"0, ...\"\n"
    );
}

#[test]
fn a_picture_is_named_as_the_png_that_it_is() {
    let (_directory, at) = temporary();
    let array = sample("north_america.zarr/air_temperature");
    let refused = zarr(&["view", &array, "-o", &at("a.jpg")]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("the picture is a PNG, so that its name ends with .png"), "{}", refused.stderr);
    assert!(!std::path::Path::new(&at("a.jpg")).exists());
    for name in ["a.PNG", "a"] {
        ok(&["view", &array, "-o", &at(name)]);
        assert!(std::fs::read(at(name)).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
}

/// The path of the innermost directory is longer than Linux takes, so that listing it fails, whoever asks.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_read_hides_nothing_else() {
    let (_directory, at) = temporary();
    let root = at("n.zarr");
    copy_directory(&sample("north_america.zarr"), &root);
    let deep = vec!["d".repeat(200); 11].join("/");
    std::fs::create_dir_all(at(&format!("lower/{deep}"))).unwrap();
    std::fs::create_dir_all(format!("{root}/height/{deep}")).unwrap();
    std::fs::rename(at("lower"), format!("{root}/height/{deep}/lower")).unwrap();

    let tree = zarr(&["tree", &root]);
    assert!(tree.code == 1 && tree.stderr.starts_with("error: cannot read /height\n"), "{}", tree.stderr);
    assert!(tree.text().contains("height  ") && tree.text().contains("cannot be opened: invalid key: cannot list "), "{}", tree.text());
    assert!(tree.text().contains("8 arrays, "), "{}", tree.text());
    let validated = zarr(&["validate", &root, "--json"]);
    let problems = &validated.json()["problems"];
    assert_eq!((validated.code, problems.as_array().map(Vec::len)), (1, Some(1)), "{problems}");
    assert_eq!(problems[0]["kind"], "unreadable directory");
}

#[test]
fn completions() {
    for (shell, piece) in [("bash", "complete -F _zarr"), ("zsh", "#compdef zarr"), ("fish", "complete -c zarr")] {
        assert!(ok(&["completions", shell]).text().contains(piece), "{shell}");
    }
}

#[test]
fn errors_say_what_to_do() {
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let run = zarr(arguments);
        let stderr = run.stderr.replace(&sample(""), "DATA/");
        assert_eq!((run.code, stderr.as_str()), (code, expected), "{arguments:?}");
    };
    check(
        &["info", &sample("north_amercia.zarr")],
        1,
        "error: DATA/north_amercia.zarr does not exist\nhint: did you mean DATA/north_america.zarr?\n",
    );
    check(
        &["info", &sample("")],
        1,
        "error: there is no Zarr array or group at DATA/\nhint: DATA/ is no Zarr itself, but holds north_america.zarr, sea_surface.zarr\n",
    );
    check(
        &["cat", &sample("sea_surface.zarr")],
        2,
        "error: DATA/sea_surface.zarr is a group, and this works on one array\n\
         hint: it holds forecast_period, forecast_reference_time, forecast_reference_time_bnds, latitude, latitude_longitude, longitude, \
         surface_temperature, time and 1 more\n",
    );
    check(
        &["cat", &sample("north_america.zarr/latitude"), "--select", "40"],
        1,
        "error: selection: position 40 is outside axis 0 of length 37\n\
         hint: a selection looks like `0, 10:20, ::-2, [1,5,3]`, an entry for each axis; `zarr info` shows the shape\n",
    );
    check(
        &["read", &sample("north_america.zarr"), "--select", "0"],
        2,
        "error: DATA/north_america.zarr is a group, and a selection is of one array\nhint: name the array in the path\n",
    );
    check(
        &["copy", &sample("north_america.zarr/time"), "x", "--version", "4"],
        2,
        "error: invalid value '4' for '--version <2|3>': `4` is not a version of the format: 2 or 3\n\nFor more information, try '--help'.\n",
    );
    check(
        &["read", &sample("north_america.zarr"), "--device", "gpu"],
        2,
        "error: invalid value 'gpu' for '--device <DEVICE>': no device `gpu`; there are `auto`, `cpu`, `cuda` and `cuda:N`\n\nFor more information, try '--help'.\n",
    );
    check(
        &["devices", "--threads", "0"],
        2,
        "error: invalid value '0' for '--threads <N>': `0` is not a number of threads\n\nFor more information, try '--help'.\n",
    );
    let chunk = zarr(&["info", &sample("north_america.zarr/latitude/c/0")]);
    assert!(chunk.stderr.ends_with("north_america.zarr/latitude\n") && chunk.stderr.contains("\nhint: a node is named by its directory: "));
    check(
        &["info", "ftp://example.org/x"],
        1,
        "error: cannot open ftp://example.org/x\n  because: bad parameter: `ftp` is not a scheme that stores are known by\nhint: a URL begins with one of file://, zip://, http://, https://, s3://, gs://, az://\n",
    );
}

/// What, where, and what to do, of failures that users have.
#[test]
fn failures_name_the_place_and_the_way_on() {
    let (_directory, at) = temporary();
    let fails = |arguments: &[&str], pieces: &[&str]| {
        let run = zarr(arguments);
        assert_ne!(run.code, 0, "{arguments:?}");
        for piece in pieces {
            assert!(run.stderr.contains(piece), "{arguments:?}: no {piece:?} in {}", run.stderr);
        }
    };
    let array = at("a");
    ok(&["copy", &sample("north_america.zarr/air_temperature"), &array]);
    let chunk = at("a/c/1/0/0");
    let whole = std::fs::read(&chunk).unwrap();
    std::fs::write(&chunk, &whole[..1000]).unwrap();
    let validate = "hint: `zarr validate` lists all chunks that cannot be decoded\n";
    fails(&["read", &array, "--device", "cpu"], &["chunk [1, 0, 0] (c/1/0/0)", "as when a shard is cut short", validate]);
    std::fs::write(&chunk, "").unwrap();
    fails(&["read", &array, "--device", "cpu"], &["the shard is cut short: its index has 84 bytes, and 0 are there", validate]);
    let metadata = std::fs::read_to_string(at("a/zarr.json")).unwrap();
    std::fs::write(at("a/zarr.json"), metadata.replace("\"zstd\"", "\"zstdd\"")).unwrap();
    fails(&["read", &array], &["codec zstdd: no provider", "hint: `zarr devices` lists the codecs that there are here\n"]);
    fails(
        &["info", "az://container/x"],
        &["Account must be specified", "hint: --setting account_name=NAME, or AZURE_STORAGE_ACCOUNT_NAME"],
    );
    fails(&["info", "s3://bucket/x", "--setting", "endpoint=localhost:9000"], &["the endpoint `localhost:9000` is no URL of a server"]);
    let plain = ["info", "s3://bucket/x", "--setting", "endpoint=http://127.0.0.1:9", "--setting", "skip_signature=true"];
    fails(&plain, &["URL scheme is not allowed", "hint: --setting allow_http=true"]);
    fails(&["read", &sample("north_america.zarr/height"), "--select", "0"], &["selection: 1 entry, and the array has 0 axes"]);
    ok(&["create", &at("g"), "--group"]);
    fails(&["create", &at("g/__a"), "--group"], &["names that start with \"__\" are reserved"]);
    assert!(!std::path::Path::new(&at("g/__a")).exists());
}

/// What the system says of writing.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_named() {
    let array = sample("north_america.zarr/time");
    let full = "No space left on device (os error 28)\n";
    assert_eq!(zarr(&["cat", &array, "-o", "/dev/full"]).stderr, format!("error: cannot write to /dev/full: {full}"));
    for (arguments, expected) in [
        (["cat", &array], format!("error: cannot write to standard output: {full}")),
        (["info", &array], format!("error: cannot write to standard output\n  because: {full}")),
    ] {
        let mut command = crate::common::command(&arguments);
        let output = command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(1), expected));
    }
    let refused = zarr(&["copy", &array, "/proc/zarr"]);
    assert_eq!(
        refused.stderr,
        "error: cannot store .zarr-copy in file:///proc/zarr\n  because: not found, key `.zarr-copy`: cannot create the directory /proc/zarr: \
         No such file or directory (os error 2) (what was stored before is unchanged)\n"
    );
    let (_directory, at) = temporary();
    ok(&["copy", &array, &at("a")]);
    std::fs::write(at("a/c/0"), "no frame").unwrap();
    let copied = zarr(&["copy", &at("a"), &at("b"), "--codec", "gzip"]).stderr;
    let expected = format!(
        "error: cannot copy file://{}/ to file://{}/\n  because: copying [0:240] of /\n  because: chunk [0] (c/0): codec zstd: ",
        at("a"),
        at("b")
    );
    assert!(copied.starts_with(&expected) && copied.ends_with("; what was copied is kept: --resume goes on from there\n"), "{copied}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = crate::common::command(&["cat", &sample("north_america.zarr/air_temperature")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn archives_say_what_they_hold() {
    let (_directory, at) = temporary();
    let archive = at("a.zip");
    ok(&["create", &format!("{archive}/deep/words"), "--shape", "3", "--dtype", "int8"]);
    let hint = |path: &str| {
        let run = zarr(&["info", path]);
        assert_eq!(run.code, 1);
        run.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default().replace(&archive, "a.zip")
    };
    assert_eq!(hint(&archive), "a.zip holds deep/words");
    assert_eq!(hint(&format!("{archive}/deep/word")), "did you mean a.zip/deep/words?");
    ok(&["create", &at("root.zip"), "--shape", "3", "--dtype", "int8"]);
    assert_eq!(hint(&at("root.zip/inside")), "");
}

#[test]
fn a_node_that_cannot_be_opened_leaves_the_table_narrow() {
    let (_directory, at) = temporary();
    for (name, document) in [
        ("g/.zgroup", r#"{"zarr_format":2}"#),
        (
            "g/bad/.zarray",
            r#"{"zarr_format":2,"shape":[1],"chunks":[1],"dtype":"|O","order":"C","compressor":null,"fill_value":0,"filters":[{"id":"pickle"}]}"#,
        ),
    ] {
        std::fs::create_dir_all(std::path::Path::new(&at(name)).parent().unwrap()).unwrap();
        std::fs::write(at(name), document).unwrap();
    }
    ok(&["create", &at("g/good"), "--shape", "3", "--dtype", "int8"]);
    for command in ["tree", "info", "read"] {
        let run = zarr(&[command, &at("g")]);
        let good = run.text().lines().find(|line| line.contains("good")).unwrap();
        assert!(good.chars().count() < 100, "{good}");
        assert!(run.text().contains("pickles are not read"), "{}", run.text());
    }
}

#[test]
fn a_node_that_cannot_be_read_fails_the_tree() {
    let (_directory, at) = temporary();
    ok(&["create", &at("g"), "--group"]);
    for name in ["bad", "good"] {
        ok(&["create", &at(&format!("g/{name}")), "--shape", "3", "--dtype", "int8"]);
    }
    std::fs::write(at("g/bad/zarr.json"), "{").unwrap();
    for options in [&[][..], &["--json"], &["--metadata-only"], &["--quiet"]] {
        let run = zarr(&[&["tree", &at("g")], options].concat());
        assert!(run.text().contains("good"), "{}", run.text());
        assert!(run.stderr.starts_with("error: cannot read /bad\n  because: bad/zarr.json: not valid JSON"), "{}", run.stderr);
        assert_eq!(run.code, 1);
    }
    std::fs::remove_dir_all(at("g/bad")).unwrap();
    assert_eq!(ok(&["tree", &at("g")]).stderr, "");
}
