"""The durable face: a control plane that runs.

`head` keeps the two heads and is the single writer; `group` is what one append makes durable; `load` gets a store back
from a journal (law J1) and `replay` executes recorded reconciles again (law J2). `loops`, `queue` and `exchange` run
controllers, `components` the scheduler and the virtual nodes. `daemon` puts it all together, at a `place` on disk.
"""
