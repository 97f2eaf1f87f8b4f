"""The grammar of statements: texts become trees, trees become texts."""
