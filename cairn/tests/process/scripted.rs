//! A server that sends scripted responses and records the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use cairn_sync::Mutex;

/// One request: its first line, its header lines, its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Asked {
    /// Returns the value of a header; the name must be in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends one response on each connection, in order, and closes it. After the last response it closes connections without one.
pub(crate) struct Scripted {
    pub(crate) endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    pub(crate) fn start(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut answers = answers.into_iter();
            for mut stream in listener.incoming().map_while(Result::ok) {
                kept.lock().push(read(&stream));
                // The client may have closed the connection.
                let _ = stream.write_all(&answers.next().unwrap_or_default());
            }
        });
        Self { endpoint, asked }
    }

    /// Returns the requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

fn read(stream: &TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    if lines.is_empty() {
        return Asked::default();
    }
    let mut asked = Asked { line: lines.remove(0), headers: lines, body: String::new() };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    asked.body = String::from_utf8(body).unwrap();
    asked
}

/// Returns a response with a body.
pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

/// Returns an error response of the management plane.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Vec<u8> {
    let error = serde_json::json!({"error": {"code": code, "message": message, "request_id": "id-7"}});
    answer(status, &error.to_string())
}
