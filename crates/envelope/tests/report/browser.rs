//! A headless Chromium, spoken to by its `DevTools` protocol (<https://chromedevtools.github.io/devtools-protocol/>): the
//! few calls that looking at a page takes.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

/// What the browser is called where it is installed.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Set where the browser must be there, so that its absence is a failure and no test is silently left out.
const REQUIRED: &str = "DATUM_REQUIRE_BROWSER";
/// Far beyond what anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    next_id: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// An open page.
pub(crate) struct Page<'b> {
    browser: &'b mut Browser,
    session: String,
}

impl Browser {
    /// Starts one; `None`, with a word on the test's output, where none is installed and none is required.
    pub(crate) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let spawn = |name: &&str| {
            Command::new(name)
                .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
                .args(["--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-port=0"])
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .arg("about:blank")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .ok()
        };
        let Some(mut child) = NAMES.iter().find_map(spawn) else {
            let required = std::env::var_os(REQUIRED).is_some_and(|value| value == "1");
            assert!(!required, "{REQUIRED}=1, and none of {NAMES:?} is on PATH");
            eprintln!("SKIPPED: no browser is on PATH ({NAMES:?}); the page was not opened");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned))
            .expect("the browser ended before it listened");
        // A full pipe would stop it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let (socket, _) = connect(url).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        Some(Self { child, socket, next_id: 0, events: Vec::new(), _profile: profile })
    }

    /// Opens a file in a window of `width` by 900 pixels, dark or light, and waits until it has loaded.
    pub(crate) fn open(&mut self, file: &Path, width: u32, dark: bool) -> Page<'_> {
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call(None, "Target.attachToTarget", &attach)["sessionId"].as_str().unwrap().to_owned();
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        for (method, params) in [
            ("Emulation.setDeviceMetricsOverride", metrics),
            ("Emulation.setEmulatedMedia", media),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Network.enable", json!({})),
            ("Page.enable", json!({})),
        ] {
            self.call(Some(&session), method, &params);
        }
        self.events.clear();
        self.call(Some(&session), "Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
        Page { browser: self, session }
    }

    fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let mut received = self.receive();
            if received["id"] == id {
                assert!(received.get("error").is_none(), "{method}: {received}");
                return received["result"].take();
            }
            self.events.push(received);
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

impl Page<'_> {
    /// The value of a JavaScript expression.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let mut result = self.browser.call(Some(&self.session), "Runtime.evaluate", &params);
        assert!(result.get("exceptionDetails").is_none(), "{result}");
        result["result"]["value"].take()
    }

    /// Whatever the page wrote to the console or threw, and what the browser complained about.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let complains = |event: &&Value| {
            matches!(
                event["method"].as_str(),
                Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded")
            )
        };
        self.browser.events.iter().filter(complains).map(|event| event["params"].to_string()).collect()
    }

    /// Every address that was asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.browser.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// A picture of the whole page, PNG in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.browser.call(Some(&self.session), "Page.captureScreenshot", &params);
        picture["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
