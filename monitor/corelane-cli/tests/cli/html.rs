//! `--html`: the page, also in a browser, and with names that try to be more than text.

use crate::browser::Browser;
use crate::support::{Folder, Pcap, captures, corelane, generated, monitor, run, skipped, syn};
use serde_json::json;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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

pub(crate) fn page_of(file: &Path, page: &Path) -> String {
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
    // The last one has the most memory that conversations took, and for a page they take more.
    let events = |text: &str| text.lines().filter(|line| !line.contains("\"stats\":")).map(str::to_owned).collect();
    let (own, plain): (Vec<String>, Vec<String>) = (events(&fs::read_to_string(&eve).unwrap()), events(&plain));
    assert!(own.len() > 100 && own == plain, "the same events");
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
    monitor(&[&file], &["--html", &name, "--memory-limit", "192M"]).code(2).one_line(&["give at least 640M"]);
    assert!(!Path::new(&name).exists());
}

/// What a script may ask of a page.
const TOOLS: &str = "const shown = id => [...document.querySelectorAll(`#${id} ~ .t`)][0]
    .querySelectorAll('tbody tr:not([hidden])').length;
    const rows = id => [...document.querySelector(`#${id} ~ .t tbody`).rows];
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
}

#[test]
fn in_a_browser_the_filter_finds_open_ports_and_protocols() {
    let Some(folder) = captures() else { return };
    let own = Folder::new();
    let page = own.path("page.html");
    page_of(&folder.join("scan-network-sweep.pcap"), &page);
    let Some(mut browser) = Browser::start(&own) else { return };
    browser.show(&page);
    let count = |browser: &mut Browser, id: &str, words: &str| {
        let script = format!("{TOOLS} filter('{words}'); return shown('{id}')");
        browser.eval(&script).as_u64().expect("a number")
    };
    let all = count(&mut browser, "scans", "");
    assert_eq!(count(&mut browser, "scans", "port:3011"), 1);
    assert!((1..all).contains(&count(&mut browser, "scans", "port:443")));
    assert_eq!(count(&mut browser, "scans", "port:3012"), 0);
    // A command is no part of what is looked for.
    assert_eq!(count(&mut browser, "conversations", "tcpdump"), 0);
    page_of(&folder.join("scan-connect-retries.pcap"), &page);
    browser.show(&page);
    // Within a row of ports too.
    page_of(&own.file("rows.pcap", open_in_a_row()), &page);
    browser.show(&page);
    for (port, found) in [(99, 0), (100, 1), (105, 1), (139, 1), (140, 0)] {
        assert_eq!(count(&mut browser, "scans", &format!("port:{port}")), found, "{port}");
    }
    page_of(&folder.join("http-mixed.pcap"), &page);
    browser.show(&page);
    let all = count(&mut browser, "protocols", "");
    assert_eq!(count(&mut browser, "protocols", "proto:dns"), 1);
    assert!((2..all).contains(&count(&mut browser, "protocols", "proto:tcp")));
    assert_eq!(count(&mut browser, "protocols", "nothing-has-this"), 0);
}

/// A scan of ports of which those from 100 to 139 are open.
fn open_in_a_row() -> Vec<u8> {
    let mut capture = Pcap::new(100, 101);
    for port in 1..140 {
        capture = capture.record(1000, 40, &syn(port));
        if port >= 100 {
            let mut back = syn(port);
            back[12..20].rotate_left(4);
            back[20..24].rotate_left(2);
            back[33] = 0x12;
            capture = capture.record(1000, 40, &back);
        }
    }
    capture.record(1010, 1, &[0]).0
}

/// A UDP datagram between hosts of one family.
pub(crate) fn datagram(hosts: [IpAddr; 2], port: u16) -> Vec<u8> {
    let udp = [port.to_be_bytes(), 9999_u16.to_be_bytes(), [0, 10], [0, 0], *b"??"].concat();
    match hosts {
        [IpAddr::V4(from), IpAddr::V4(to)] => {
            [&[0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0][..], &from.octets(), &to.octets(), &udp].concat()
        }
        [IpAddr::V6(from), IpAddr::V6(to)] => {
            [&[0x60, 0, 0, 0, 0, 10, 17, 64][..], &from.octets(), &to.octets(), &udp].concat()
        }
        _ => panic!("two families"),
    }
}

#[test]
fn in_a_browser_addresses_are_in_their_order() {
    let own = Folder::new();
    let page = own.path("page.html");
    let hosts =
        ["2001:db8::10", "10.0.0.10", "9.255.0.1", "2001:db8::2", "192.168.0.1", "10.0.0.9", "::a", "fe80::1:2"];
    let mut capture = Pcap::new(100, 101);
    for host in hosts {
        let host: IpAddr = host.parse().unwrap();
        let server = if host.is_ipv4() { "8.8.8.8" } else { "2001:db8:ffff::" }.parse().unwrap();
        for port in [40_000, 5000] {
            let data = datagram([host, server], port);
            capture = capture.record(1000, data.len() as u32, &data);
        }
    }
    page_of(&own.file("hosts.pcap", capture.0), &page);
    let Some(mut browser) = Browser::start(&own) else { return };
    browser.show(&page);
    let order = |id: &str| {
        format!(
            "{TOOLS} document.querySelector('#{id} ~ .t th button').click();
            return rows('{id}').map(row => row.cells[0].textContent)"
        )
    };
    let ordered = [
        "8.8.8.8",
        "9.255.0.1",
        "10.0.0.9",
        "10.0.0.10",
        "192.168.0.1",
        "::a",
        "2001:db8::2",
        "2001:db8::10",
        "2001:db8:ffff::",
        "fe80::1:2",
    ];
    assert_eq!(browser.eval(&order("hosts")), json!(ordered));
    let clients = ordered.iter().filter(|host| hosts.contains(host));
    let ends: Vec<_> = clients.flat_map(|host| [5000, 40_000].map(|port| format!("{host}:{port}"))).collect();
    assert_eq!(browser.eval(&order("conversations")), json!(ends));
}

#[test]
fn in_a_browser_a_command_can_be_had_by_mouse_touch_and_keyboard_also_without_the_script() {
    let Some(folder) = captures() else { return };
    let own = Folder::new();
    let page = own.path("page.html");
    page_of(&folder.join("http-mixed.pcap"), &page);
    let Some(mut browser) = Browser::start(&own) else { return };
    for without in [true, false] {
        browser.ask("Emulation.setScriptExecutionDisabled", json!({"value": without}));
        browser.show(&page);
        let shown = |browser: &mut Browser| {
            browser.eval(
                "return [...document.querySelectorAll('[popover]')].filter(part => part.checkVisibility()).map(part => {
                    const area = part.getBoundingClientRect();
                    const isThere = area.top >= 0 && area.left >= 0
                        && area.right <= innerWidth && area.bottom <= innerHeight;
                    return [part.textContent.split(' ')[0], isThere] })",
            )
        };
        let tcpdump = json!([["tcpdump", true]]);
        assert_eq!(shown(&mut browser), json!([]));
        let (x, y): (f64, f64) = serde_json::from_value(browser.eval(
            "const key = document.querySelector('#conversations ~ .t .k');
            key.scrollIntoView({block: 'center'});
            const area = key.getBoundingClientRect();
            return [area.left + area.width / 2, area.top + area.height / 2]",
        ))
        .unwrap();
        for kind in ["mousePressed", "mouseReleased"] {
            let click = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            browser.ask("Input.dispatchMouseEvent", click);
        }
        assert_eq!(shown(&mut browser), tcpdump, "the mouse, {without}");
        browser.press("Escape", 27, "");
        assert_eq!(shown(&mut browser), json!([]), "{without}");
        // The key still has the focus.
        browser.press("Enter", 13, "\r");
        assert_eq!(shown(&mut browser), tcpdump, "the keyboard, {without}");
        browser.press("Escape", 27, "");
        browser.ask("Emulation.setTouchEmulationEnabled", json!({"enabled": true}));
        for (kind, points) in [("touchStart", json!([{"x": x, "y": y}])), ("touchEnd", json!([]))] {
            browser.ask("Input.dispatchTouchEvent", json!({"type": kind, "touchPoints": points}));
        }
        // What a touch means is found out later.
        let is_shown = (0..1000).any(|_| shown(&mut browser) == tcpdump);
        assert!(is_shown, "a finger, {without}");
        browser.ask("Emulation.setTouchEmulationEnabled", json!({"enabled": false}));
    }
}

/// On paper nothing can be scrolled to.
#[test]
fn in_print_no_table_is_wider_than_the_paper() {
    let Some(folder) = captures() else { return };
    let own = Folder::new();
    let page = own.path("page.html");
    let Some(mut browser) = Browser::start(&own) else { return };
    let generated = own.file("generated.pcap", generated(100_000).0);
    let all = ["scan-network-sweep.pcap", "http-mixed.pcap", "ipv6-http.pcap"].map(|name| folder.join(name));
    browser.ask("Emulation.setEmulatedMedia", json!({"media": "print"}));
    // A4 and Letter, between margins of a centimetre.
    for file in all.iter().chain([&generated]) {
        page_of(file, &page);
        for width in [718, 740] {
            let size = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
            browser.ask("Emulation.setDeviceMetricsOverride", size);
            browser.show(&page);
            let wide = browser.eval(
                "return [...document.querySelectorAll('.t, figure, .card, .matrix, pre')]
                    .filter(part => part.scrollWidth > part.clientWidth + 1 || part.getBoundingClientRect().right > innerWidth)
                    .map(part => [part.querySelector('caption')?.textContent, part.scrollWidth, part.clientWidth])",
            );
            assert_eq!(wide, json!([]), "{}, {width}", file.display());
        }
    }
}

/// The script of axe-core, as `CORELANE_AXE` names it, says what is wrong for those who see little, or use no mouse.
#[test]
fn in_a_browser_axe_finds_nothing() {
    let Some(axe) = std::env::var_os("CORELANE_AXE") else {
        return skipped("CORELANE_AXE does not name the script of axe-core, axe.min.js");
    };
    let axe = fs::read_to_string(&axe).unwrap_or_else(|error| panic!("{}: {error}", axe.display()));
    let Some(folder) = captures() else { return };
    let own = Folder::new();
    let page = own.path("page.html");
    let Some(mut browser) = Browser::start(&own) else { return };
    for name in ["scan-connect-retries.pcap", "scan-network-sweep.pcap", "http-mixed.pcap", "vlan-mpls.pcap"] {
        page_of(&folder.join(name), &page);
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 400)] {
            let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            browser.ask("Emulation.setEmulatedMedia", json!({"features": features}));
            let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            browser.ask("Emulation.setDeviceMetricsOverride", size);
            browser.show(&page);
            browser.eval(&axe);
            let found = browser.eval(
                "document.querySelector('.k').click();
                return axe.run().then(({violations}) => violations.map(wrong =>
                    [wrong.id, wrong.help, wrong.nodes.length, wrong.nodes[0].html.slice(0, 200)]))",
            );
            assert_eq!(found, json!([]), "{name}, {scheme}, {width}: {found:#}");
        }
    }
}
