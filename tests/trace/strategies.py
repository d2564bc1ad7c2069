"""Hypothesis strategies for recordings."""

from hypothesis import strategies as st

from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceEvent
from steersman.trace.tracked import Tracked

names = st.text("abcdefghij-0123456789", min_size=1, max_size=12)
kinds = st.sampled_from(["v1.Pod", "apps/v1.Deployment", "batch.volcano.sh/v1alpha1.Job", "v1.ConfigMap"])
hashes = st.integers(0, 2**64 - 1)
seconds = st.integers(0, 2**33)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
specs = st.dictionaries(names, json_values, max_size=4)
slots = st.builds("{}/{}".format, names, names)


@st.composite
def objects(draw):
    api_version, _, kind = draw(kinds).rpartition(".")
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"annotations": {}, "name": draw(names)}}
    if draw(st.booleans()):
        obj["metadata"]["namespace"] = draw(names)
    if draw(st.booleans()):
        obj["spec"] = draw(specs)
    return obj


lives = st.builds(PodLife) | st.builds(PodLife, seconds) | st.builds(PodLife, seconds, seconds)
tracked = st.builds(
    Tracked, st.none() | st.lists(st.text(max_size=9), max_size=2).map(tuple), st.booleans(), st.booleans()
)


@st.composite
def traces(draw):
    event = st.builds(TraceEvent, seconds, *[st.lists(objects(), max_size=2).map(tuple)] * 2)
    events = sorted(draw(st.lists(event, max_size=4)), key=lambda e: e.ts)
    return Trace(
        config=draw(st.dictionaries(kinds, tracked, max_size=3)),
        events=tuple(events),
        index=draw(st.dictionaries(kinds, st.dictionaries(slots, hashes, max_size=3), max_size=3)),
        lifecycles=draw(
            st.dictionaries(
                st.tuples(kinds, slots),
                st.dictionaries(hashes, st.lists(lives, max_size=3).map(tuple), max_size=2),
                max_size=3,
            )
        ),
    )
