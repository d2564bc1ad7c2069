"""The corpus: known public bugs of real controllers, each as a pair of small controllers, with the bug and without it.

How it is made up

- `row.py`      what a `Row` is, and what is asked of its pair (`reported`, `innocent`, `holds`).
- `objects.py`  the small objects that the pairs are made of: custom kinds, ConfigMaps, StatefulSets, volumes.
- `pairs/`      the pairs, a file for each kind of mechanism; each has `ROWS`. A new file there is found by itself.
- `table.py`    all rows in order, the numbers that the corpus has, and what is not attempted, with the reason.
- `test_pairs.py`, `test_table.py` are made from the table, and so is docs/corpus.md (`python scripts/corpus.py`).

What a row promises

- The buggy controller is reported within the row's `bounds`: every property in `found` is violated. Each fault in the
  bounds is a cause: its Action (for `lag`: a stale read) stands in the schedule of each of them, and so does every text
  of `shows` (a step, a livelock's diff). Without these faults the buggy one passes: it is right on a good day.
- The fixed controller passes within the same bounds, and within those of `harder`; COMPLETE, or, where `bounded` gives
  the reason, BOUNDED.
- No pair tells the checker what its bug is: what is violated is a default property, or what a user of that system would
  say ("a live cluster keeps its volumes").

Rows that share a mechanism share controllers, with parameters, but each is a row with the objects of its source.
Controllers are written from the described mechanism; no code is taken from anywhere.
"""
