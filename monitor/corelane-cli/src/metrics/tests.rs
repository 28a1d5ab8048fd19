//! What clients of the metrics see.

mod exposition;

use super::*;
use exposition::parse_metrics;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc;

/// A run in which every number differs, and with names that need escapes.
fn full() -> Snapshot {
    let by = |names: &[&'static str], first: u64| -> By {
        names.iter().zip(first..).map(|(&name, number)| (Cow::Borrowed(name), number)).collect()
    };
    Snapshot {
        updated: Some(Instant::now()),
        interfaces: vec![
            Interface { name: "eth0".into(), is_up: true, packets: 1, drops: 2, freezes: 3, truncated: 4 },
            Interface { name: "odd\"\\\nname".into(), is_up: true, packets: u64::MAX, ..Interface::default() },
        ],
        bytes: 5,
        packet_lag: Duration::from_micros(1_500),
        last_packet_ns: Some(1_700_000_000_250_000_000),
        conversations: 6,
        scan_groups: 7,
        memory: by(&["flows", "attempts"], 10),
        refused: by(&["flows"], 20),
        evicted: by(&["idle", "full"], 30),
        alerts: by(&["vertical", "horizontal"], 40),
        events: by(&["flow", "stats"], 50),
        outputs: vec![OutputState { name: "/var/log/eve.json".into(), errors: 60, dropped: 70, error: None }],
        queue_fill: vec![(Cow::Borrowed("analyzers"), 0.25), (Cow::Borrowed("writer"), 0.0)],
        problems: Vec::new(),
        protections: vec![("landlock", "ABI 6".to_owned()), ("seccomp", "a \"filter\"".to_owned())],
    }
}

fn serve(snapshot: Snapshot) -> Metrics {
    Listener::bind(address("0").unwrap()).expect("a free port").serve(move || snapshot.clone()).expect("a thread")
}

/// The whole answer to some bytes.
fn exchange(metrics: &Metrics, request: &[u8]) -> String {
    let mut client = TcpStream::connect(metrics.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(request).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// Status and body of an answer that is what HTTP allows.
fn get(metrics: &Metrics, path: &str) -> (u16, String) {
    parse_answer(&exchange(metrics, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()))
}

#[track_caller]
fn parse_answer(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap();
    let headers: BTreeMap<_, _> = lines.map(|line| line.split_once(": ").expect("a header")).collect();
    assert_eq!(headers["Content-Length"].parse(), Ok(body.len()), "{answer}");
    assert_eq!(headers["Connection"], "close");
    (status[..3].parse().unwrap(), body.to_owned())
}

#[test]
fn every_number_of_a_run_is_told_under_its_name() {
    let metrics = serve(full());
    let (status, text) = get(&metrics, "/metrics");
    assert_eq!(status, 200);
    let samples = parse_metrics(&text);
    let expected: &[(&str, &str, &str, f64)] = &[
        ("capture_packets_total", "interface", "eth0", 1.0),
        ("capture_packets_total", "interface", "odd\"\\\nname", u64::MAX as f64),
        ("capture_drops_total", "interface", "eth0", 2.0),
        ("capture_drops_total", "interface", "odd\"\\\nname", 0.0),
        ("capture_freezes_total", "interface", "eth0", 3.0),
        ("capture_freezes_total", "interface", "odd\"\\\nname", 0.0),
        ("capture_truncated_total", "interface", "eth0", 4.0),
        ("capture_truncated_total", "interface", "odd\"\\\nname", 0.0),
        ("bytes_total", "", "", 5.0),
        ("packet_lag_seconds", "", "", 0.0015),
        ("last_packet_timestamp_seconds", "", "", 1_700_000_000.25),
        ("conversations", "", "", 6.0),
        ("scan_groups", "", "", 7.0),
        ("memory_bytes", "part", "flows", 10.0),
        ("memory_bytes", "part", "attempts", 11.0),
        ("refused_total", "part", "flows", 20.0),
        ("evicted_total", "reason", "idle", 30.0),
        ("evicted_total", "reason", "full", 31.0),
        ("alerts_total", "kind", "vertical", 40.0),
        ("alerts_total", "kind", "horizontal", 41.0),
        ("events_total", "type", "flow", 50.0),
        ("events_total", "type", "stats", 51.0),
        ("output_errors_total", "output", "/var/log/eve.json", 60.0),
        ("output_dropped_total", "output", "/var/log/eve.json", 70.0),
        ("queue_fill_ratio", "stage", "analyzers", 0.25),
        ("queue_fill_ratio", "stage", "writer", 0.0),
        ("build_info", "version", env!("CARGO_PKG_VERSION"), 1.0),
    ];
    let expected: BTreeMap<_, _> = expected
        .iter()
        .map(|&(name, label, value, number)| {
            let labels = (!label.is_empty()).then(|| (label.to_owned(), value.to_owned()));
            ((format!("corelane_{name}"), labels.into_iter().collect::<Vec<_>>()), number)
        })
        .collect();
    assert_eq!(samples, expected);
    // A run that has hardly begun says less, by the same rules.
    let samples = parse_metrics(&super::metrics(Snapshot::default()));
    assert_eq!(samples.len(), 6, "bytes, lag, last packet, conversations, groups, build: {samples:?}");
}

#[test]
fn prometheus_finds_nothing_to_complain_about() {
    let child = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        let _ = writeln!(io::stderr(), "SKIPPED: promtool is not installed");
        return;
    };
    child.stdin.take().unwrap().write_all(super::metrics(full()).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn health_names_what_is_wrong() {
    let shared = Arc::new(Mutex::new(full()));
    let source = Arc::clone(&shared);
    let metrics = Listener::bind(address("0").unwrap()).unwrap().serve(move || source.lock().unwrap().clone()).unwrap();
    let health = || {
        let (status, body) = get(&metrics, "/healthz");
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        let fields: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, ["problems", "protections", "status", "version"], "one shape");
        assert_eq!(json["protections"]["seccomp"], "a \"filter\"");
        let problems: Vec<String> =
            json["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap().to_owned()).collect();
        assert_eq!(json["status"] == "ok", problems.is_empty());
        (status, problems)
    };
    assert_eq!(health(), (200, vec![]));
    let change = |change: fn(&mut Snapshot)| change(&mut shared.lock().unwrap());
    change(|of| of.interfaces[1].is_up = false);
    assert_eq!(health(), (503, vec!["interface odd\"\\\nname is down".to_owned()]));
    change(|of| of.outputs[0].error = Some("No space left on device".to_owned()));
    change(|of| of.problems.push("the clock stands still".to_owned()));
    let (status, problems) = health();
    assert_eq!((status, problems.len()), (503, 3));
    assert_eq!(problems[1..], ["output /var/log/eve.json: No space left on device", "the clock stands still"]);
    change(|of| *of = full());
    assert_eq!(health(), (200, vec![]), "it is over when it is over");
    // The system may be younger than a minute.
    if let Some(long_ago) = Instant::now().checked_sub(STALE + Duration::from_secs(1)) {
        shared.lock().unwrap().updated = Some(long_ago);
        assert_eq!(health(), (503, vec!["no progress for 61 s".to_owned()]));
    }
}

#[test]
fn only_what_is_there_is_answered() {
    let metrics = serve(full());
    let status = |request: &[u8]| parse_answer(&exchange(&metrics, request)).0;
    assert_eq!(status(b"GET /metrics?name=x HTTP/1.0\r\n\r\n"), 200);
    // What is sent to a proxy.
    for target in ["http://host/metrics", "HTTP://[::1]:9100/healthz?x", "http:///metrics"] {
        assert_eq!(status(format!("GET {target} HTTP/1.1\r\nHost: host\r\n\r\n").as_bytes()), 200, "{target}");
    }
    let none = ["http://metrics", "http://", "http:/metrics", "ftp://host/metrics", "http://host?/metrics/"];
    for path in ["/", "/metrics/", "/metricsx", "/../metrics", "*"].into_iter().chain(none) {
        assert_eq!(status(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()), 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let answer =
            exchange(&metrics, format!("{method} /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
    }
    // The head of the same answer, without its body.
    let head = exchange(&metrics, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    let whole = exchange(&metrics, b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && whole.starts_with(&head), "{head}");
}

#[test]
fn garbage_is_refused_and_harms_nothing() {
    let metrics = serve(full());
    let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'x'; MOST_REQUEST]].concat();
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
    let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let odd: [&[u8]; 8] = [
        &long,
        many.as_bytes(),
        &tls,
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n",
        b"\xff\xfe /metrics HTTP/1.1\r\n\r\n",
    ];
    for request in odd {
        let (status, _) = parse_answer(&exchange(&metrics, request));
        assert_eq!(status, 400, "{}", String::from_utf8_lossy(request));
    }
    // One that stops in the middle, and one that says nothing.
    let mut client = TcpStream::connect(metrics.address()).unwrap();
    client.write_all(b"GET /met").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(parse_answer(&answer).0, 400);
    drop(TcpStream::connect(metrics.address()).unwrap());
    assert_eq!(get(&metrics, "/healthz").0, 200);
}

#[test]
fn many_scrapes_at_once_are_all_answered() {
    let metrics = serve(full());
    let expected = super::metrics(full());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(get(&metrics, "/metrics"), (200, expected.clone()));
                }
            });
        }
    });
}

#[test]
fn a_client_that_dawdles_is_cut_off() {
    let metrics = serve(full());
    let start = Instant::now();
    let mut slow = TcpStream::connect(metrics.address()).unwrap();
    slow.write_all(b"GET /met").unwrap();
    let mut reader = slow.try_clone().unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // A byte now and then keeps no connection open, which a time-out for each byte would.
        scope.spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(50)) == Err(mpsc::RecvTimeoutError::Timeout) {
                if slow.write_all(b"x").is_err() {
                    break;
                }
            }
        });
        // It comes behind the slow one, and is answered before that has lost its turn.
        assert_eq!(get(&metrics, "/metrics").0, 200);
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        assert!(start.elapsed() > PATIENCE / 2 && start.elapsed() < PATIENCE * 10, "{:?}", start.elapsed());
        drop(stop);
    });
}

#[test]
fn clients_that_say_nothing_hold_up_no_other() {
    let metrics = serve(full());
    let connect = || TcpStream::connect(metrics.address()).unwrap();
    let mut idle: Vec<_> = (0..5).map(|_| connect()).collect();
    let start = Instant::now();
    assert_eq!(get(&metrics, "/healthz").0, 200);
    // One after the other they would take two seconds each.
    assert!(start.elapsed() < PATIENCE * 4, "{:?}", start.elapsed());
    // The oldest are given up for others, however many come.
    idle.extend((0..2 * MOST_CLIENTS).map(|_| connect()));
    assert_eq!(get(&metrics, "/healthz").0, 200);
    assert!(start.elapsed() < PATIENCE * 40, "{:?}", start.elapsed());
    let start = Instant::now();
    drop(metrics);
    assert!(start.elapsed() < PATIENCE * 10, "the end waits for none of them: {:?}", start.elapsed());
    drop(idle);
}

#[test]
fn the_port_is_free_again_when_the_server_ends() {
    let metrics = serve(full());
    let address = metrics.address();
    let taken = Listener::bind(address).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let said = taken.to_string();
    assert!(
        said.starts_with(&format!("{address}: metrics cannot be offered there: ")) && said.contains("another port")
    );
    // A connection is closed by the server here, so its port may rest for a while; without one it is free at once.
    drop(metrics);
    assert!(TcpStream::connect(address).is_err());
    let nowhere = Listener::bind("192.0.2.1:0".parse().unwrap()).unwrap_err();
    assert_eq!(nowhere.kind(), io::ErrorKind::AddrNotAvailable);
    assert!(nowhere.to_string().contains("192.0.2.1:0: "));
}

#[test]
fn addresses_of_the_option() {
    for (text, value) in [
        ("9100", "127.0.0.1:9100"),
        (":9100", "127.0.0.1:9100"),
        ("0.0.0.0:1", "0.0.0.0:1"),
        ("[::]:65535", "[::]:65535"),
        ("10.1.2.3:0", "10.1.2.3:0"),
    ] {
        assert_eq!(address(text), Ok(value.parse().unwrap()), "{text}");
    }
    for wrong in ["", ":", "65536", ":99999", "host:9100", "1.2.3.4", "1.2.3.4:", "::1:9100", "-1", "1.2.3.4:x", " 1"] {
        assert!(address(wrong).is_err_and(|why| why.contains("9100")), "{wrong}");
    }
}
