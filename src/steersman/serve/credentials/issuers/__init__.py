"""Users that other issuers know: their tokens, and whom these stand for. Set by an AuthenticationConfiguration."""
