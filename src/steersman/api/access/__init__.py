"""Who a request is made by, and what they may do."""
