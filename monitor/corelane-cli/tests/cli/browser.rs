//! Chromium, if there is one, to show pages in.

use crate::support::{Folder, skipped};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser that is asked through a pipe, as its DevTools are.
pub(crate) struct Browser {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: u64,
    session: Value,
    /// Exceptions, log entries and requests so far.
    events: Vec<Value>,
}

impl Browser {
    pub(crate) fn start(folder: &Folder) -> Option<Self> {
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

    /// Presses a key and lets it go.
    pub(crate) fn press(&mut self, key: &str, code: u8, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let parameters =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.ask("Input.dispatchKeyEvent", parameters);
        }
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).expect("an answer");
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }

    pub(crate) fn ask(&mut self, method: &str, parameters: Value) -> Value {
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
    pub(crate) fn show(&mut self, page: &Path) {
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

    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let script = format!("(() => {{ {script} }})()");
        let parameters = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
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
