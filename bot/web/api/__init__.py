"""The API for programs: sessions are started, watched and steered with tokens that owners of accounts make."""
