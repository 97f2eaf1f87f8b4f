"""OAuth: bearer tokens checked against a key set (JWKS), and tokens that clients obtain and keep fresh."""
