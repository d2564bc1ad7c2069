"""Properties out of the box: what must hold whether or not a scenario claims anything. One a file.

`names.EVERY` has what is said of each; `judge.Judge` judges them. A new one is a file with its `ABOUT` and what finds
out whether it holds, a place in EVERY, and a line in `Judge`.
"""
