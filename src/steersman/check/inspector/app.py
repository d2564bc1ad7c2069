"""The inspector's screen: at the left what there is, in the middle the steps of a run, at the right one step in detail.

What is shown comes from a file that anybody may have written: it is shown as text without markup, and what would move
the cursor is made visible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, OptionList, Static, Tree
from textual.widgets.option_list import Option
from textual.widgets.tree import TreeNode

from steersman.check.inspector.runs import change_lines, parting_of, run_called, runs_of, why
from steersman.check.report import run_file
from steersman.check.report.saved_run import SavedCheck, SavedCommand, SavedPlace, SavedRun, SavedStep, visible

COLOURS: Final = {
    "start": "yellow",
    "read": "blue",
    "write": "green",
    "view": "magenta",
    "fault": "red",
    "user": "cyan",
}
SIGNS: Final = {"+": "green", "-": "red", "~": "yellow"}
ASIDE: Final = "dim"

Node = tuple[int, str]
"""What a line of the tree stands for: the check and the name of a run; "" for the check itself; `compare 1 2`."""


class Inspector(App[None]):
    """One saved run."""

    CSS_PATH = None
    CSS: ClassVar[str] = """
    #what { width: 34; border-right: solid $primary-darken-2; }
    #steps { width: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    #detail { width: 46; border-left: solid $primary-darken-2; padding: 0 1; }
    #said { height: auto; max-height: 5; padding: 0 1; background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "why", "Why this step"),
        Binding("a", "all", "All steps"),
        Binding("n", "next_stale", "Next stale read or fault"),
        Binding("m", "mark", "Mark"),
        Binding("s", "save", "Save"),
        Binding("q", "quit", "Quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, command: SavedCommand, path: Path) -> None:
        super().__init__()
        self.command = command
        self.path = path
        self.at = 0
        """The check, from 0."""
        self.name_of_run = ""
        self.run_shown: SavedRun | None = None
        self.only: frozenset[int] | None = None
        """The steps that tell why, where somebody asked."""

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static(id="said", markup=False)
        with Horizontal():
            yield Tree[Node]("run", id="what")
            yield OptionList(id="steps", markup=False)
            with VerticalScroll(id="detail"):
                yield Static(id="step", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Fills the tree and goes to where it was left."""
        tree = self.query_one("#what", Tree)
        tree.show_root = False
        for at, check in enumerate(self.command.checks):
            self._add_check(tree.root, at, check)
        place = self.command.place
        first = next((at for at, check in enumerate(self.command.checks) if not check.holds), 0)
        if place is not None:
            self.show_run(place.check, place.run)
            self._select(place.step)
        elif self.command.checks:
            names = [each.name for each in runs_of(self.command.checks[first])]
            self.show_run(first, names[0] if names else "")
        (self.query_one("#steps") if self.run_shown is not None else tree).focus()

    # -- what there is -----------------------------------------------------------------------------------------------

    def _add_check(self, root: TreeNode[Node], at: int, check: SavedCheck) -> None:
        mark, style = ("✓", "green") if check.holds else ("✗", "red")
        here = root.add(_line(f"{mark} {check.title} {check.word}", style), (at, ""), expand=True)
        for named in runs_of(check):
            here.add_leaf(_line(named.title), (at, named.name))
        for parting in check.partings:
            here.add_leaf(
                _line(f"end {parting.one} ≠ end {parting.other}"), (at, f"compare {parting.one} {parting.other}")
            )
        if check.picture is not None:
            states = here.add(_line(f"states ({len(check.picture.spots)})"), (at, "states"), expand=False)
            states.allow_expand = True

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Node]) -> None:
        """States are put into the tree when they are first asked for: by depth, what is marked first."""
        node = event.node
        if node.data is None or node.data[1] != "states" or node.children:
            return
        at = node.data[0]
        picture = self.command.checks[at].picture
        assert picture is not None
        depths: dict[int, TreeNode[Node]] = {}
        for place, spot in enumerate(picture.spots):
            leaf = (at, f"state {place}")
            label = _line(f"state {spot.state}{f': {spot.mark}' if spot.mark else ''}")
            if spot.mark and spot.mark != "start":
                node.add_leaf(_line(f"{label.plain}, {spot.depth} steps"), leaf)
        for place, spot in enumerate(picture.spots):
            if spot.depth not in depths:
                depths[spot.depth] = node.add(_line(f"after {spot.depth} steps"), (at, ""))
            depths[spot.depth].add_leaf(
                _line(f"state {spot.state}{f': {spot.mark}' if spot.mark else ''}"), (at, f"state {place}")
            )

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Shows what was chosen."""
        if event.node.data is None:
            return
        at, name = event.node.data
        if name.startswith("compare "):
            _, one, other = name.split()
            self._compare(at, int(one), int(other))
        elif name != "states":
            self.show_run(at, name)

    # -- a run -------------------------------------------------------------------------------------------------------

    def show_run(self, at: int, name: str) -> None:
        """Shows a run of a check, or what the check says."""
        check = self.command.checks[at]
        self.at, self.name_of_run, self.only = at, name, None
        self.run_shown = run_called(check, name)
        kind, _, number = name.partition(" ")
        told = [Text(f"{check.title}: {check.outcome}  {check.word}", "bold")]
        if self.run_shown is not None and kind in ("violation", "other"):
            violation = check.violations[int(number) - 1]
            told.append(Text(f"{violation.title}: {violation.message}", "red"))
        elif name:
            told.append(Text(name if self.run_shown is not None else f"{name}: its steps were not saved"))
        else:
            told.append(Text(check.summary))
        self._say(Text("\n").join(told))
        self._fill()

    def _fill(self) -> None:
        steps = self.query_one("#steps", OptionList)
        steps.clear_options()
        run = self.run_shown
        if run is None:
            return
        for step in run.steps:
            if self.only is None or step.number in self.only:
                steps.add_option(Option(self._row(run, step), id=str(step.number)))
        if run.omitted:
            steps.add_option(Option(_line(f"     … and {run.omitted} more steps, not saved"), disabled=True))
        if steps.option_count:
            steps.highlighted = 0

    def _row(self, run: SavedRun, step: SavedStep) -> Text:
        row = Text()
        marked = SavedPlace(self.at, self.name_of_run, step.number) in self.command.marks
        in_loop = run.for_ever and step.number > run.turn
        row.append("* " if marked else "↻ " if in_loop else "  ", "bold yellow")
        row.append(f"{step.number:>4} ", ASIDE)
        row.append("● ", COLOURS.get(step.mark, "white"))
        if step.stale:
            row.append("stale ", "bold red")
        row.append(visible(step.text).replace("\n", " "))
        return row

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Shows the step in detail."""
        step = self._step()
        if step is not None:
            self.query_one("#step", Static).update(Text("\n").join(_detail(step)))
            self.query_one("#detail").scroll_home(animate=False)

    def _step(self) -> SavedStep | None:
        """The step that the cursor is on."""
        steps = self.query_one("#steps", OptionList)
        if self.run_shown is None or steps.highlighted is None:
            return None
        number = steps.get_option_at_index(steps.highlighted).id
        return None if number is None else self.run_shown.steps[int(number) - 1]

    def _select(self, number: int) -> None:
        steps = self.query_one("#steps", OptionList)
        for at in range(steps.option_count):
            if steps.get_option_at_index(at).id == str(number):
                steps.highlighted = at

    def _compare(self, at: int, one: int, other: int) -> None:
        parting = parting_of(self.command.checks[at], one, other)
        if parting is None:
            return
        self._say(Text(f"the ways to end {one} and end {other} part at step {parting.step}", "bold"))
        lines = [Text(f"to end {one}:", ASIDE), _line(parting.first or "(has ended)")]
        lines += [Text(f"to end {other}:", ASIDE), _line(parting.second or "(has ended)")]
        lines.append(Text(f"from end {one} to end {other}:", ASIDE))
        for change in parting.differences:
            lines += [_line(f"{sign} {text}", SIGNS.get(sign, "")) for sign, text in change_lines(change)]
        self.query_one("#step", Static).update(Text("\n").join(lines))

    def _say(self, text: Text) -> None:
        self.query_one("#said", Static).update(Text(visible(text.plain), spans=text.spans) if text.plain else text)

    # -- keys --------------------------------------------------------------------------------------------------------

    def action_why(self) -> None:
        """Only the steps that the chosen one rests on."""
        step = self._step()
        if step is None or self.run_shown is None:
            return
        self.only = why(self.run_shown, step.number)
        self._fill()
        self._select(step.number)
        self._say(
            Text(f"why step {step.number}: {len(self.only)} of {len(self.run_shown.steps)} steps; a shows all", "bold")
        )

    def action_all(self) -> None:
        """All steps again."""
        step = self._step()
        self.show_run(self.at, self.name_of_run)
        if step is not None:
            self._select(step.number)

    def action_next_stale(self) -> None:
        """The next step that read from a cache that was behind, or in which something went wrong."""
        step = self._step()
        if step is None or self.run_shown is None:
            return
        later = [each for each in self.run_shown.steps if each.stale or each.mark == "fault"]
        found = next((each for each in later if each.number > step.number), later[0] if later else None)
        if found is not None:
            self.only = None
            self._fill()
            self._select(found.number)

    def action_mark(self) -> None:
        """Marks the step, or takes the mark away; `save` keeps it."""
        step = self._step()
        if step is None:
            return
        place = SavedPlace(self.at, self.name_of_run, step.number)
        marks = self.command.marks
        kept = [mark for mark in marks if mark != place] if place in marks else [*marks, place]
        self.command = dataclasses.replace(self.command, marks=kept)
        self._fill()
        self._select(step.number)

    def action_save(self) -> None:
        """Writes the file again, with the marks and the place one is at."""
        step = self._step()
        place = SavedPlace(self.at, self.name_of_run, 0 if step is None else step.number)
        self.command = dataclasses.replace(self.command, place=place if self.command.checks else None)
        try:
            run_file.save(self.command, self.path)
        except OSError as error:
            self.notify(f"{error.filename}: {error.strerror}; not saved", severity="error", markup=False)
        else:
            self.notify(f"saved {self.path}", markup=False)


def _line(text: str, style: str = "") -> Text:
    """A line that may say anything, on one line and without effect."""
    return Text(visible(text).replace("\n", " "), style)


def _detail(step: SavedStep) -> Iterator[Text]:
    """A step: what it did, called, saw, rests on, woke and changed."""
    yield Text(visible(f"{step.number}. {step.text}"), "bold")
    if step.outcome:
        yield _line(step.outcome)
    yield _line(step.label, ASIDE)
    for title, lines in (
        ("call", [step.call] if step.call else []),
        ("saw", step.seen),
        ("rests on", [f"step {number} ({how})" for number, how in step.causes]),
        ("woke", step.woke),
    ):
        if lines:
            yield Text(f"\n{title}", "bold underline")
            yield from [_line(line) for line in lines]
    if step.changes:
        yield Text("\nchanged", "bold underline")
    for change in step.changes:
        yield from [_line(f"{sign} {text}", SIGNS.get(sign, "")) for sign, text in change_lines(change)]
