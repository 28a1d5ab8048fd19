//! `--html`: the page, also in a browser, and with names that try to be more than text.

use crate::support::{Folder, captures, corelane, generated, monitor, run, skipped};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Names that a browser, a shell or a reader may take for something else.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = [
        "<script>window.ran=1</script>",
        "</style><script>window.ran=1</script>",
        "</script><img src=x onerror=window.ran=1>",
        "\"onmouseover=\"window.ran=1",
        "'onclick='window.ran=1",
        "javascript:window.ran=1",
        "&lt;script&gt;window.ran=1",
        "evil\u{202e}moc.knab",
        "a\u{1}\u{1b}[2J",
        "]]><svg/onload=window.ran=1>",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("<b>".repeat(20_000));
    names
}

/// A capture with an HTTP request, a DNS query and unknown payload for each name. Link type 101, raw IP.
fn capture() -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 0xffff, 101].map(u32::to_le_bytes).concat();
    let mut packet = |port: u16, server: u16, protocol: u8, sequence: u32, flags: u8, payload: &[u8]| {
        let header = match protocol {
            6 => [&sequence.to_be_bytes()[..], &[0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]].concat(),
            _ => [&(8 + payload.len() as u16).to_be_bytes()[..], &[0, 0]].concat(),
        };
        let length = 24 + header.len() + payload.len();
        file.extend([1_700_000_000, u32::from(port), length as u32, length as u32].map(u32::to_le_bytes).concat());
        file.extend([0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, protocol, 0, 0]);
        file.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        file.extend([port.to_be_bytes(), server.to_be_bytes()].concat());
        file.extend([&header, payload].concat());
    };
    for (port, name) in (1024..).zip(hostile()) {
        let request = format!("GET /{name} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: {name}\r\n\r\n");
        for (number, part) in request.as_bytes().chunks(1400).enumerate() {
            packet(port, 80, 6, 1 + 1400 * number as u32, 0x18, part);
        }
        let label = &name.as_bytes()[..name.len().min(60)];
        let mut query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        query.push(label.len() as u8);
        query.extend(label);
        query.extend(b"\0\0\x01\0\x01");
        packet(port, 53, 17, 0, 0, &query);
        packet(port, 9999, 17, 0, 0, format!("<i>{}", &name[..name.len().min(20)]).as_bytes());
    }
    file
}

fn page_of(file: &Path, page: &Path) -> String {
    let options = ["--html", page.to_str().unwrap(), "--format", "json"];
    run(corelane(["monitor"]).args(options).arg(file)).code(0).silent();
    fs::read_to_string(page).expect("a page")
}

#[test]
fn hostile_names_come_out_as_text() {
    let folder = Folder::new();
    // The name of the file may be hostile too.
    let file = folder.file("a'<script>window.ran=1<x>.pcap", capture());
    let page = page_of(&file, &folder.path("page.html"));
    assert_eq!(page.matches("<script>").count(), 1, "the page's own");
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(!page.contains("<img") && !page.contains("<b><b>") && !page.contains("<svg/") && !page.contains("<i><"));
    assert!(page.contains("&lt;script&gt;window.ran=1&lt;/script&gt;"));
    assert!(page.contains("evil\\u{202e}moc.knab") && !page.contains('\u{202e}'));
    assert!(!page.contains(['\u{1}', '\u{1b}']));
    assert!(page.len() < 400_000, "{}", page.len());
}

#[test]
fn a_page_comes_with_all_other_outputs_and_from_the_demo() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(20_000).0);
    let plain = run(corelane(["monitor", "--eve", "-", "--tunnels"]).arg(&file)).code(0).stdout;
    let (eve, page) = (folder.path("eve.json"), folder.path("page.html"));
    let options = ["--eve", eve.to_str().unwrap(), "--html", page.to_str().unwrap()];
    let reported = monitor(&[&file], &options).code(0).silent();
    assert_eq!(reported.packets(), 20_000);
    assert!(fs::read_to_string(&eve).unwrap() == plain, "the same events");
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    let out = run(corelane(["monitor", "--html", "-"]).arg(&file)).code(0).silent().stdout;
    assert!(out.starts_with("<!doctype html>") && out.ends_with("</html>\n"));
}

#[test]
fn a_page_is_refused_where_it_cannot_be() {
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &generated(100).0);
    let name = folder.path("a").to_str().unwrap().to_owned();
    for (other, both) in [
        ("--eve", "the page and the events"),
        ("--timing", "the page and the timing"),
        ("--write", "the page and the packets"),
    ] {
        monitor(&[&file], &["--html", &name, other, &name]).code(2).one_line(&["cannot hold both", both]);
    }
    monitor(&[&file], &["--html", file.to_str().unwrap()]).code(2).one_line(&["is an input"]);
    monitor(&[&file], &["--html", "-"]).code(2).one_line(&["--html -", "the JSON report"]);
    monitor(&[&file], &["--html", &name, "--continuous"]).code(2).one_line(&["--html needs a whole capture"]);
    run(&mut corelane(["monitor", "-i", "lo", "--html", &name])).code(2).one_line(&["--html needs a whole capture"]);
    monitor(&[&file], &["--html", &name, "--memory-limit", "192M"]).code(2).one_line(&["give at least 480M"]);
    assert!(!Path::new(&name).exists());
}

/// A browser that is asked through a pipe, as its DevTools are.
struct Browser {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: u64,
    session: Value,
    /// Exceptions, log entries and requests so far.
    events: Vec<Value>,
}

impl Browser {
    fn start(folder: &Folder) -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = names.into_iter().find(|name| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        });
        let Some(name) = found else {
            skipped("no Chromium to show the page in");
            return None;
        };
        let options =
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe";
        let profile = folder.path("profile");
        // The browser reads from descriptor 3 and writes to 4.
        let script = format!(
            "exec {name} {options} --user-data-dir='{}' about:blank 3<&0 4>&1 1>/dev/null 2>&1",
            profile.display()
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let (asks, answers) = (child.stdin.take().expect("piped"), BufReader::new(child.stdout.take().expect("piped")));
        let mut browser = Browser { child, asks, answers, number: 0, session: Value::Null, events: Vec::new() };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        browser.session =
            browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}))["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).expect("an answer");
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.asks.write_all(message.to_string().as_bytes()).expect("a pipe");
        self.asks.write_all(b"\0").expect("a pipe");
        loop {
            let answer = self.next();
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Shows a page, which has to load without an error, a log entry, or a request for anything else.
    fn show(&mut self, page: &Path) {
        self.events.clear();
        let url = format!("file://{}", page.display());
        self.ask("Page.navigate", json!({"url": url}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next();
            self.events.push(event);
        }
        let bad = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled" => true,
            "Network.requestWillBeSent" => event["params"]["request"]["url"] != url.as_str(),
            _ => false,
        };
        assert_eq!(self.events.iter().find(bad), None);
    }

    fn eval(&mut self, script: &str) -> Value {
        let script = format!("(() => {{ {script} }})()");
        let parameters = json!({"expression": script, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.answers.read_to_end(&mut Vec::new());
    }
}

/// What a script may ask of a page.
const TOOLS: &str = "const shown = id => [...document.querySelectorAll(`#${id} ~ .t`)][0]
    .querySelectorAll('tbody tr:not([hidden])').length;
    const q = document.getElementById('q'), time = document.getElementById('time');
    const filter = text => { q.value = text; q.dispatchEvent(new Event('input')); };
    const said = () => document.getElementById('from').textContent !== '';";

#[test]
fn in_a_browser_nothing_hostile_runs() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    page_of(&folder.file("hostile.pcap", capture()), &page);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.show(&page);
    assert_eq!(browser.eval("return window.ran === undefined"), true);
    assert_eq!(browser.eval("return document.scripts.length"), 1);
    let names = browser.eval("return [...document.querySelectorAll('.n')].map(cell => cell.textContent).join('\\n')");
    assert!(names.as_str().unwrap().contains("</style><script>window.ran=1</script>"), "{names}");
    // Even an escape that was forgotten would not run.
    browser.eval(
        "const markup = '<img src=data:, onerror=\"window.ran=1\"><p onclick=\"window.ran=2\" id=p>';
        document.body.insertAdjacentHTML('beforeend', markup);
        document.getElementById('p').click();",
    );
    browser.eval(
        "const own = document.createElement('script'); own.textContent = 'window.ran=3'; document.body.append(own);",
    );
    assert_eq!(browser.eval("return window.ran === undefined"), true);
}

#[test]
fn in_a_browser_filter_order_and_brush_work() {
    let Some(folder) = captures() else { return };
    let (own, file) = (Folder::new(), folder.join("http-mixed.pcap"));
    let page: PathBuf = own.path("page.html");
    page_of(&file, &page);
    let Some(mut browser) = Browser::start(&own) else { return };
    browser.show(&page);
    let count = |browser: &mut Browser, words: &str| {
        let script =
            format!("{TOOLS} filter('{words}'); return [shown('hosts'), shown('conversations'), shown('names')]");
        serde_json::from_value::<[u64; 3]>(browser.eval(&script)).expect("three numbers")
    };
    let all = count(&mut browser, "");
    assert!(all[1] == 136 && all[2] == 26, "{all:?}");
    assert_eq!(count(&mut browser, "proto:dns")[1], 69);
    assert_eq!(count(&mut browser, "port:53")[1..], [69, 0]);
    assert_eq!(count(&mut browser, "ip:10.0.0.6 proto:tls")[1], 2);
    assert_eq!(count(&mut browser, "ip:10.0.0.0/24")[1], all[1]);
    assert_eq!(count(&mut browser, "ip:10.0.0.4")[2], 3);
    assert_eq!(count(&mut browser, "sni:ynet proto:http")[0], 3);
    assert_eq!(count(&mut browser, "nothing-has-this"), [0; 3]);
    // A link filters.
    let first = format!(
        "{TOOLS} location.hash = '#ip:212.199.202.9'; dispatchEvent(new Event('hashchange'));
        return [q.value, shown('hosts')]"
    );
    assert_eq!(browser.eval(&first), json!(["ip:212.199.202.9", 1]));
    // Order: by packets, either way.
    let order = "const table = document.querySelector('#conversations ~ .t table');
        const head = [...table.tHead.rows[0].cells].find(cell => cell.textContent === 'Packets');
        head.firstChild.click();
        const values = [...table.tBodies[0].rows].map(row => Number(row.cells[head.cellIndex].dataset.v));
        return [head.getAttribute('aria-sort'), values]";
    for (name, sign) in [("descending", -1), ("ascending", 1)] {
        let (said, values): (String, Vec<i64>) = serde_json::from_value(browser.eval(order)).unwrap();
        assert_eq!(said, name);
        assert!(values.len() == 136 && values.is_sorted_by_key(|value| sign * value), "{values:?}");
    }
    // The brush: the first tenth by the keyboard, then none.
    count(&mut browser, "");
    let press = |key: &str| {
        format!(
            "{TOOLS} time.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}));
            return [shown('conversations'), said()]"
        )
    };
    let (some, says): (u64, bool) = serde_json::from_value(browser.eval(&press("ArrowRight"))).unwrap();
    assert!(some > 0 && some < 136 && says, "{some}");
    assert_eq!(browser.eval(&press("Escape")), json!([136, false]));
    // By the mouse, over all.
    let (x, y, width): (f64, f64, f64) = serde_json::from_value(browser.eval(
        "const time = document.getElementById('time');
        time.scrollIntoView({block: 'center'});
        const area = time.getBoundingClientRect();
        return [area.left, area.top + 60, area.width]",
    ))
    .unwrap();
    for (kind, x) in [("mousePressed", x + 1.0), ("mouseMoved", x + width / 2.0), ("mouseReleased", x + width / 2.0)] {
        browser.ask(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}),
        );
    }
    let half = browser.eval(&format!("{TOOLS} return shown('conversations')")).as_u64().unwrap();
    assert!(half > some && half < 136, "{half}");
    // A command is said.
    let said = browser
        .eval("document.querySelector('#conversations ~ .t .k').click(); return document.querySelector('.k').title");
    assert!(said.as_str().unwrap().starts_with("tcpdump -nr "), "{said}");
}
