//! Webhooks: storage events delivered to HTTP endpoints, signed, at least once.
