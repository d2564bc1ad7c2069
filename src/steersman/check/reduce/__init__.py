"""Reductions: less to explore, and the same to be found.

Each is a guess that is verified: it is made while the search goes on, from what one state shows; when the search is
through, the graph tells whether anything that happened later could have made a difference. What could is not guessed
again, and the search starts anew. So a finished search has made no wrong guess.
"""
