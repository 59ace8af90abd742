-- Why the gateway itself last refused a request with this token for good: people are told that, not the provider's no.
ALTER TABLE gateway_tokens ADD COLUMN refused TEXT;
