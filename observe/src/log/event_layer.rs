//! Formats `tracing` events as log lines.
//!
//! Formatting an event's values may log another event. A line is therefore built in a scratch buffer of the thread and then
//! copied under the shard's lock.

use std::cell::Cell;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::format::{
    LogFormat, push_field_name, push_line_end, push_line_start, push_message, push_number_field,
    push_text_field,
};
use super::sink::Sink;

/// Longest text of one value, in bytes. Longer text is cut, so that no line fills the buffer.
const VALUE_BYTES_MAX: usize = 8 * 1024;
/// Largest scratch buffer that is kept. A larger one is freed after its line.
const SCRATCH_BYTES_KEPT: usize = 16 * 1024;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(crate) struct EventLayer {
    pub(crate) sink: Arc<Sink>,
    pub(crate) format: LogFormat,
}

impl<S: Subscriber> Layer<S> for EventLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = SCRATCH.try_with(Cell::take).unwrap_or_default();
        line.clear();
        let metadata = event.metadata();
        push_line_start(&mut line, self.format, metadata.level().as_str(), metadata.target());
        // Two passes, because the message comes first, whatever the order of the fields.
        event.record(&mut MessageVisitor { out: &mut line, format: self.format });
        event.record(&mut FieldVisitor { out: &mut line, format: self.format });
        push_line_end(&mut line, self.format);
        self.sink.append(|out| out.extend_from_slice(&line));
        if line.capacity() <= SCRATCH_BYTES_KEPT {
            let _ = SCRATCH.try_with(|scratch| scratch.set(line));
        }
    }
}

const MESSAGE: &str = "message";

/// Formats a value and cuts it to at most [`VALUE_BYTES_MAX`], between characters.
fn bounded_text(value: &dyn Debug) -> String {
    let mut text = String::new();
    // Fails only if the value's `Debug` fails. What it has written is kept.
    let _ = write!(text, "{value:?}");
    text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
    text
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]
}

struct MessageVisitor<'a> {
    out: &'a mut Vec<u8>,
    format: LogFormat,
}

impl Visit for MessageVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == MESSAGE {
            push_message(self.out, self.format, &bounded_text(value));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            push_message(self.out, self.format, bounded(value));
        }
    }
}

struct FieldVisitor<'a> {
    out: &'a mut Vec<u8>,
    format: LogFormat,
}

impl Visit for FieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != MESSAGE {
            push_text_field(self.out, self.format, field.name(), &bounded_text(value));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != MESSAGE {
            push_text_field(self.out, self.format, field.name(), bounded(value));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        push_number_field(self.out, self.format, field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        push_field_name(self.out, self.format, field.name());
        if value < 0 {
            self.out.push(b'-');
        }
        super::format::push_decimal(self.out, value.unsigned_abs());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        push_field_name(self.out, self.format, field.name());
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_sync::Mutex;
    use std::time::Duration;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: LogFormat, emit: impl FnOnce()) -> Vec<String> {
        let captured = Captured::default();
        let sink = Sink::start(captured.clone(), format).unwrap();
        let layer = EventLayer { sink: Arc::clone(&sink), format };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), emit);
        sink.flush(Duration::from_secs(120));
        let bytes = captured.0.lock().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn json_events_are_flat_objects() {
        let lines = lines(LogFormat::Json, || {
            tracing::warn!(target: "service", count = 3, below = -4, ok = true, text = "a\n\"b\"", error = %"x y", "it \"happened\"");
        });
        assert_eq!(lines.len(), 1);
        let value: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(value["message"], "it \"happened\"");
        assert_eq!((&value["level"], &value["target"]), (&"WARN".into(), &"service".into()));
        assert_eq!((&value["count"], &value["below"], &value["ok"]), (&3.into(), &(-4).into(), &true.into()));
        assert_eq!((&value["text"], &value["error"]), (&"a\n\"b\"".into(), &"x y".into()));
    }

    #[test]
    fn text_events_are_one_line() {
        let lines = lines(LogFormat::Text, || {
            tracing::error!(target: "service::start", text = "two\nlines", "message\nwith a break");
        });
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].ends_with(r#" ERROR service::start: message\nwith a break text="two\nlines""#),
            "{}",
            lines[0]
        );
    }

    #[test]
    fn values_that_log_while_formatted_do_not_deadlock() {
        struct Logging;
        impl Debug for Logging {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                tracing::info!(target: "service", "inner");
                out.write_str("outer value")
            }
        }
        // The dispatcher may ignore events inside another event, so only the outer line is certain.
        let lines = lines(LogFormat::Text, || tracing::info!(target: "service", value = ?Logging, "outer"));
        assert!(lines.iter().any(|line| line.contains("value=\"outer value\"")));
    }
}
