"""The JSON forms of values and messages: text to values and back, without any connection."""
