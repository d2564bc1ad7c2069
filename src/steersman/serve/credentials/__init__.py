"""Who clients are: certificates, tokens, and the authority behind them."""
